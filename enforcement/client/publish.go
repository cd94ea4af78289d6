package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// The pause before a message is sent again doubles.
const (
	firstResend   = 50 * time.Millisecond
	longestResend = 2 * time.Second
)

// errNoServer means that nothing was sent because no server is connected.
var errNoServer = errors.New("not connected to nats")

// send gives a message to the connection and does not wait for its
// acknowledgement. While no server is connected nothing is sent: what the
// connection would keep back might come out long after it was given up.
func (c *Client) send(m *nats.Msg) (jetstream.PubAckFuture, error) {
	if !c.nats.IsConnected() {
		if c.nats.IsClosed() {
			return nil, nats.ErrConnectionClosed
		}
		return nil, errNoServer
	}
	// Who sends it again knows better when: the callers' own pauses.
	return c.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
}

// store publishes a message until its stream has it. It is sent again under the
// same id, which the stream takes for the same message. It gives up when ctx
// ends, the client is closed, or the server refuses for good.
func (c *Client) store(ctx context.Context, m *nats.Msg) error {
	for pause := firstResend; ; pause = min(2*pause, longestResend) {
		back := c.link.back()
		err := c.storeOnce(ctx, m)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || final(err) {
			return fmt.Errorf("publish to %s: %w", m.Subject, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-back:
		case <-c.done:
			err = errors.Join(ErrClosed, err)
		case <-ctx.Done():
			err = errors.Join(context.Cause(ctx), err)
		}
		timer.Stop()
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return fmt.Errorf("publish to %s: %w", m.Subject, err)
		}
	}
}

func (c *Client) storeOnce(ctx context.Context, m *nats.Msg) error {
	// The library writes the address of the acknowledgement into the message.
	sent := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
	future, err := c.send(sent)
	if err != nil {
		return err
	}
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", schemas.ErrNoAck, context.Cause(ctx))
	case <-c.done:
		return ErrClosed
	}
}

// final reports whether sending the same message again cannot help.
func final(err error) bool {
	for _, lasting := range []error{nats.ErrConnectionClosed, nats.ErrMaxPayload, nats.ErrBadSubject, ErrClosed} {
		if errors.Is(err, lasting) {
			return true
		}
	}
	refusal, isRefusal := errors.AsType[*jetstream.APIError](err)
	return isRefusal && refusal.Code < 500
}

// refused reports whether a stream certainly does not hold the message.
func refused(err error) bool {
	_, isRefusal := errors.AsType[*jetstream.APIError](err)
	return isRefusal || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// message is an event on its way. Its id is the message id too.
func message[T schemas.Data](subject string, event schemas.Event[T]) (*nats.Msg, error) {
	body, err := schemas.Encode(event)
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject)
	m.Data = body
	m.Header.Set(jetstream.MsgIDHeader, event.ID)
	return m, nil
}
