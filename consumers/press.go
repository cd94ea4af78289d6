package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// streamTooSmall is JetStream's code for a message above its stream's size limit.
const streamTooSmall = jetstream.ErrorCode(10054)

// press makes news of the outbox into events and publishes them. What is no event
// goes to the dead letters and counts as published: it would never become one,
// and the workspace's other news would wait behind it for ever.
type press struct {
	publisher publisher
	editions  map[string]edition
	letters   *deadLetters
	broadcast *broadcast
	probe     probe
	log       *slog.Logger
}

// PublishNews is that of subscriptions.Publisher.
func (p *press) PublishNews(ctx context.Context, news []subscriptions.News) []error {
	errs := make([]error, len(news))
	bad := make(map[int]string)
	var messages []schemas.Message
	var of []int
	for i, n := range news {
		m, err := p.compose(n)
		if err != nil {
			bad[i] = refusedBody(err).Reason
			continue
		}
		messages, of = append(messages, m), append(of, i)
	}
	p.probe.at(kindRelay, "publishing")
	p.probe.sending(kindRelay, len(messages), func() {
		for k, result := range p.publisher.PublishAll(ctx, messages) {
			if tooLarge(result.Err) {
				bad[of[k]] = string(schemas.ReasonTooLarge) + ": " + result.Err.Error()
			}
			errs[of[k]] = result.Err
			if result.Err == nil && news[of[k]].Kind == subscriptions.NewsInvalidated {
				p.broadcast.offer(messages[k].Body)
			}
		}
	})
	p.bury(ctx, news, bad, errs)
	p.probe.at(kindRelay, "published")
	return errs
}

// bury writes the news that can never be published to the dead letters, and puts
// what came of it into errs.
func (p *press) bury(ctx context.Context, news []subscriptions.News, bad map[int]string, errs []error) {
	if len(bad) == 0 {
		return
	}
	var letters []letter
	var of []int
	for i, reason := range bad {
		letters, of = append(letters, letter{message: p.asMessage(news[i]), reason: reason}), append(of, i)
	}
	for k, err := range p.letters.write(ctx, letters) {
		n := news[of[k]]
		errs[of[k]] = err
		if err == nil {
			p.log.ErrorContext(ctx, "news put aside, they can never be published", "id", n.ID, "workspace_id", n.WorkspaceID,
				"kind", n.Kind, "reason", letters[k].reason)
		}
	}
}

// asMessage is the message of a dead letter: the row as if it had come over the
// subject that it was for. Its sequence is the row's position.
func (p *press) asMessage(n subscriptions.News) *message {
	subject := n.Kind + "." + n.WorkspaceID
	if e, known := p.editions[n.Kind]; known {
		subject = e.subject(n.WorkspaceID)
	}
	return &message{
		stream: "outbox:" + n.ID, subject: headerText(subject), sequence: uint64(n.Position), delivered: 1,
		stored: n.At, body: n.Body,
	}
}

// edition is how news of a kind are published.
type edition struct {
	subject func(ws string) string
	encode  func(n subscriptions.News) ([]byte, error)
}

func editionsOf(t schemas.Topology) map[string]edition {
	return map[string]edition{
		subscriptions.NewsRenewed: {t.Renewed, func(n subscriptions.News) ([]byte, error) {
			return encodeNews(n, func(d schemas.SubscriptionRenewed) string { return d.WorkspaceID })
		}},
		subscriptions.NewsInvalidated: {t.Invalidated, func(n subscriptions.News) ([]byte, error) {
			return encodeNews(n, func(d schemas.PlanInvalidated) string { return d.WorkspaceID })
		}},
		subscriptions.NewsThreshold: {t.Threshold, func(n subscriptions.News) ([]byte, error) {
			return encodeNews(n, func(d schemas.UsageThresholdReached) string { return d.WorkspaceID })
		}},
	}
}

func (p *press) compose(n subscriptions.News) (schemas.Message, error) {
	e, known := p.editions[n.Kind]
	if !known {
		return schemas.Message{}, &schemas.DecodeError{
			Reason: schemas.ReasonUnknownType, Field: "subject_kind", Detail: fmt.Sprintf("is %.64q, which no event is made of", n.Kind),
		}
	}
	body, err := e.encode(n)
	if err != nil {
		return schemas.Message{}, err
	}
	return schemas.Message{Subject: e.subject(n.WorkspaceID), ID: n.ID, Body: body}, nil
}

// encodeNews makes the event of a row. The workspace that its data names must be the
// row's: that is the one whose order it keeps and whose subject it goes to.
func encodeNews[T schemas.Data](n subscriptions.News, workspace func(T) string) ([]byte, error) {
	var data T
	if err := json.Unmarshal(n.Body, &data); err != nil {
		return nil, &schemas.DecodeError{Reason: schemas.ReasonSyntax, Field: "data", Detail: "is not as it must be: " + err.Error()}
	}
	if ws := workspace(data); ws != n.WorkspaceID {
		return nil, &schemas.DecodeError{
			Reason: schemas.ReasonSubjectMismatch, Field: "data.workspace_id", Detail: fmt.Sprintf("is %.140q, but the row's is %.140q", ws, n.WorkspaceID),
		}
	}
	return schemas.Encode(schemas.NewEvent(schemas.SourceHeadroom, n.ID, n.At, data))
}

// tooLarge reports whether the server, or the stream, is set up for smaller messages.
func tooLarge(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &refused) && refused.ErrorCode == streamTooSmall
}
