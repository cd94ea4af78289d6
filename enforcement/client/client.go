package client

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

const (
	// DefaultTimeout is a little more than Headroom puts a request off before it
	// answers with a 9008.
	DefaultTimeout = 15 * time.Second
	// DefaultAskAgain is a thousand times what an answer takes when all is well.
	DefaultAskAgain = time.Second

	// ackTimeout is how long a stored message may go unacknowledged.
	ackTimeout = 5 * time.Second
	// maxPending is how many messages may await their acknowledgement. The library
	// refuses more than that: each is a call of the engine's, which waits anyway.
	maxPending = 1 << 17
	// inboxPrefix is where Headroom sends answers to, and nowhere else.
	inboxPrefix = "_INBOX."
)

// Options makes a Client. Source is required; what is zero of the rest has the
// default of its comment.
type Options struct {
	// Source names the engine in its events, like "/engines/eu-1": 1 to 256
	// characters. All instances of one engine may share it.
	Source string
	// Topology is the installation's prefix of subjects: "headroom".
	Topology schemas.Topology
	// Timeout bounds each Admit, beside its context: DefaultTimeout.
	Timeout time.Duration
	// AskAgain is how long Admit waits for an answer before it asks a second time;
	// then it doubles. DefaultAskAgain.
	AskAgain time.Duration
	// Log is told of replies that are ignored and of what could not be sent: nothing.
	Log *slog.Logger
	// Now is this machine's clock: time.Now.
	Now func() time.Time
}

// Client asks a Headroom, over one NATS connection, for any number of executions
// at once. It is safe for concurrent use, and reconnects as its connection does.
type Client struct {
	nats     *nats.Conn
	js       jetstream.JetStream
	source   string
	topology schemas.Topology
	timeout  time.Duration
	askAgain time.Duration
	log      *slog.Logger
	now      func() time.Time

	link    *link
	inbox   *inbox
	stops   *stops
	returns *returns

	done    chan struct{}
	ending  sync.Once
	working sync.WaitGroup
}

// New makes a Client over the connection, which stays the caller's and has to
// outlive it. It talks to the server when it is first used. Close it in the end.
func New(nc *nats.Conn, o Options) (*Client, error) {
	if o.Source == "" {
		return nil, errors.New("open client: no source: name the engine in Options.Source")
	}
	if err := o.Topology.Validate(); err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		return nil, fmt.Errorf("open client: open jetstream: %w", err)
	}
	c := &Client{
		nats: nc, js: js, source: o.Source, topology: o.Topology,
		timeout: DefaultTimeout, askAgain: DefaultAskAgain, log: slog.New(slog.DiscardHandler), now: time.Now,
		done: make(chan struct{}),
	}
	if o.Timeout > 0 {
		c.timeout = o.Timeout
	}
	if o.AskAgain > 0 {
		c.askAgain = o.AskAgain
	}
	if o.Log != nil {
		c.log = o.Log
	}
	if o.Now != nil {
		c.now = o.Now
	}
	address := nc.NewInbox()
	if !strings.HasPrefix(address, inboxPrefix) {
		return nil, fmt.Errorf("open client: the connection's inbox prefix makes %q: Headroom answers only under %s", address, inboxPrefix)
	}
	c.link, c.returns, c.stops = newLink(nc), newReturns(), newStops(c)
	if c.inbox, err = openInbox(c, address); err != nil {
		c.link.close()
		return nil, fmt.Errorf("open client: %w", err)
	}
	c.working.Go(c.link.watch)
	c.working.Go(c.returns.work(c))
	c.working.Go(c.stops.listen)
	return c, nil
}

// Close ends every call that waits with ErrClosed, and no Run's lease is kept
// alive any more. The connection stays open.
func (c *Client) Close() {
	c.ending.Do(func() {
		close(c.done)
		c.inbox.close()
		c.stops.close()
		c.link.close()
		c.working.Wait()
		c.js.CleanupPublisher()
	})
}
