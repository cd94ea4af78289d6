package enforcement_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestEveryScriptIsLoaded(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	files, err := os.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := enforcement.LoadScripts(t.Context(), client)
	if err != nil || loaded != len(files)-3 {
		t.Errorf("%d scripts are loaded (%v), want %d", loaded, err, len(files)-3)
	}
	memory, err := client.Info(t.Context(), "memory").Result()
	if err != nil || !strings.Contains(memory, fmt.Sprintf("number_of_cached_scripts:%d\r", loaded)) {
		t.Errorf("the server does not have %d scripts (%v)", loaded, err)
	}
	if err := client.Do(t.Context(), "ACL", "SETUSER", "default", "-script").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := enforcement.LoadScripts(t.Context(), client); err == nil || !strings.Contains(err.Error(), ".lua") {
		t.Errorf("without the permission the error is %v, want the script's name in it", err)
	}
}
