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

	"github.com/headroomhq/headroom/enforcement/api"
)

// maxHeader is how many bytes of header a request may have; net/http adds 4 KiB.
const maxHeader = 16 << 10

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
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}

// served are the handlers of all that is served.
type served struct{ health, metrics, stripe, api http.Handler }

// routes is all that is served. What is not is a problem, as everything of the API is.
func routes(s served, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.health)
	mux.Handle("GET /readyz", s.health)
	mux.Handle("GET /metrics", s.metrics)
	mux.Handle("/webhooks/stripe", s.stripe)
	for _, path := range api.Paths() {
		mux.Handle(path, s.api)
	}
	return api.WithProblems(mux, log)
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
