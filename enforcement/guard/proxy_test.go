package guard_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// cancelRequest is the code of a request to cancel, which comes on a connection of its own.
const cancelRequest = 80877102

// withoutCancels is a way to the server on which requests to cancel are lost, as
// they are behind some firewalls and balancers. It is an address.
func withoutCancels(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { forward(over, client, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		all.Wait()
	})
	u.Host = listener.Addr().String()
	return u.String()
}

// forward passes everything on but a request to cancel, at most until the test is over.
func forward(over context.Context, client net.Conn, server string) {
	defer client.Close()
	hangUp := context.AfterFunc(over, func() { _ = client.Close() })
	defer hangUp()
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return
	}
	if binary.BigEndian.Uint32(head[4:]) == cancelRequest {
		return
	}
	behind, err := net.Dial("tcp4", server)
	if err != nil {
		return
	}
	defer behind.Close()
	hangUpBehind := context.AfterFunc(over, func() { _ = behind.Close() })
	defer hangUpBehind()
	if _, err := behind.Write(head); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, behind)
		_ = client.Close()
	})
	_, _ = io.Copy(behind, client)
	_ = behind.(*net.TCPConn).CloseWrite()
	back.Wait()
}
