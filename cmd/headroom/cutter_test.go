package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// cutter stands between clients and a server, and cuts the one off from the other.
type cutter struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
}

func newCutter(t *testing.T, address string) *cutter {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, target: u.Host, conns: make(map[net.Conn]bool)}
	c.open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.open.Go(func() { c.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		c.open.Wait()
	})
	return c
}

// through is the address by way of the cutter.
func (c *cutter) through(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = c.listener.Addr().String()
	return u.String()
}

// cut ends every connection and lets none be made until mend.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *cutter) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	if !c.join(client) {
		return
	}
	defer c.leave(client)
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	c.open.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
}

func (c *cutter) join(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isCut {
		c.conns[conn] = true
	}
	return !c.isCut
}

func (c *cutter) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}
