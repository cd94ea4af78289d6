package main

import (
	"errors"

	"github.com/headroomhq/headroom/enforcement/api"
)

// setTokens refuses tokens that are wrong; no error shows one.
func setTokens(field *Secret, text string) error {
	if _, err := api.ParseTokens(text); err != nil {
		return err
	}
	*field = NewSecret(text)
	return nil
}

// tokens are who may use the API. They were read before, when the settings were.
func (c Config) tokens() (api.Tokens, error) { return api.ParseTokens(c.APITokens.Reveal()) }

// isOpen reports whether the API asks for no token.
func (c Config) isOpen() bool { return c.APITokens.Reveal() == "" }

// errOpen is the end of a serve that anybody could command.
var errOpen = errors.New("HEADROOM_HTTP_ADDR is reached from other machines and HEADROOM_API_TOKENS is not set, so anybody could decide for your workspaces: " +
	"set HEADROOM_API_TOKENS to name:token, with a token of 16 characters or more, or HEADROOM_HTTP_ADDR to a loopback address")

// checkExposure refuses to serve the API to everybody but on this machine: settings that
// are wrong together.
func (c Config) checkExposure() error {
	if c.isOpen() && !isLoopback(c.HTTPAddr) {
		return &usageError{Err: errOpen}
	}
	return nil
}
