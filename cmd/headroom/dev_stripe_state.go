package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// devState is how a running dev is found by commands on the same machine.
type devState struct {
	PID int `json:"pid"`
	// Stripe is the address of the fake Stripe, Settings are those of the services.
	Stripe   string            `json:"stripe"`
	Settings map[string]string `json:"settings"`
}

// stateFile is where a dev of this user writes its address, empty without a place for it.
func stateFile(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	if dir == "" {
		if home := getenv("HOME"); home != "" {
			dir = filepath.Join(home, ".local", "state")
		}
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "headroom", "dev.json")
}

// write replaces what an earlier dev wrote: the last one is found.
func (s devState) write(path string) error {
	body, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, body, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write where dev is found: %w", err)
	}
	return nil
}

// forget removes it, unless another dev has written it since.
func (s devState) forget(path string) {
	if is, err := readState(path); err == nil && is.PID == s.PID && is.Stripe == s.Stripe {
		_ = os.Remove(path) // whoever reads it finds that nobody answers
	}
}

func readState(path string) (devState, error) {
	var s devState
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return s, errors.New("no `headroom dev` runs here: start one in another terminal, or say where it is with --at")
	}
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read where dev is found: %w", err)
	}
	return s, nil
}
