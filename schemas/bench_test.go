package schemas_test

import (
	"testing"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func BenchmarkDecode(b *testing.B) {
	for _, c := range codecs() {
		body := mustEncode(c, 0)
		subject := "headroom.x." + workspaceOf(body)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := c.decode(subject, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	decision := schemas.NewEvent(sampleSource, sampleID, at(10, 0), denied())
	request := schemas.NewEvent(sampleSource, sampleID, at(10, 0), requested())
	b.Run("execution.requested", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := schemas.Encode(request); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decision.made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := schemas.Encode(decision); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPublishAll(b *testing.B) {
	p, _ := publisher(b, schemas.PublisherOptions{})
	b.Log("server version", schematest.NATS(b).ConnectedServerVersion())
	messages := decisions("ws", b.N)
	b.ResetTimer()
	for _, r := range p.PublishAll(b.Context(), messages) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
