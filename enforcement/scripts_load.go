package enforcement

import (
	"context"
	"embed"
	"fmt"
	"path"
	"slices"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// LoadScripts gives every script to the server's cache, in a Cluster to that of each
// primary, and writes nothing else. It returns how many there are. The error names the
// script that the server does not take: it is away, forbids scripts, or is none of
// those that Headroom runs on.
func LoadScripts(ctx context.Context, client redis.UniversalClient) (int, error) {
	entries, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		return 0, fmt.Errorf("list scripts: %w", err)
	}
	loaded := 0
	for _, entry := range entries {
		if slices.Contains([]string{"struct.lua", "prelude.lua", "state.lua"}, entry.Name()) {
			continue // they begin each of the others
		}
		source, err := scriptFiles.ReadFile(path.Join("scripts", entry.Name()))
		if err != nil {
			return loaded, fmt.Errorf("read script %s: %w", entry.Name(), err)
		}
		if err := client.ScriptLoad(ctx, prelude+string(source)).Err(); err != nil {
			return loaded, fmt.Errorf("load script %s: %w", entry.Name(), err)
		}
		loaded++
	}
	return loaded, nil
}
