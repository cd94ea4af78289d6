package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// httpServer serves the handler on a listener that is open already.
type httpServer struct {
	server   *http.Server
	listener net.Listener
}

// listen opens HEADROOM_HTTP_ADDR.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on HEADROOM_HTTP_ADDR: %w; set it to another port, or to port 0 for a free one", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on HEADROOM_HTTP_ADDR: %w", err)
	}
	return listener, nil
}

// listenHTTP opens addr, so that a port which is taken is heard of at once.
func listenHTTP(ctx context.Context, addr string, handler http.Handler, log *slog.Logger) (*httpServer, error) {
	listener, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &httpServer{
		listener: listener,
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       time.Minute,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}

// routes is all that is served.
func routes(health *health, metrics, stripe http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", health.handler())
	mux.Handle("/webhooks/stripe", stripe)
	mux.Handle("GET /metrics", metrics)
	return mux
}

// serve answers until shutdown, and then returns nil.
func (h *httpServer) serve() error {
	if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// shutdown lets the requests under way finish, until ctx ends.
func (h *httpServer) shutdown(ctx context.Context) error {
	if err := h.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("finish http requests: %w", err), h.server.Close())
	}
	return nil
}
