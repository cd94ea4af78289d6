package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

func natsDiagnoses() []diagnosis {
	const service = "nats"
	return []diagnosis{
		{
			"nats.reachable", service, "no server answers, or none lets Headroom in", "",
			"start the server, or correct HEADROOM_NATS_URL and HEADROOM_NATS_CREDS",
		},
		{
			"nats.version", service, "the server is older than 2.12.15, or of 2.13.0 to 2.14.4: it lacks fixes for lost and repeated messages", "",
			"upgrade every server to 2.12.15 of the 2.12 line, or to 2.14.5 or later",
		},
		{
			"nats.jetstream", service, "JetStream is not on for this account, or does not answer", "",
			"add a jetstream block to the server's configuration, and enable it for the account; in a cluster, see that a majority of servers is up",
		},
		{
			"nats.streams", service, "a stream or a consumer is missing", "a consumer has settings of an earlier version",
			"run `headroom migrate`",
		},
		{
			"nats.settings", service, "a stream or a consumer keeps less than Headroom needs, or shorter, or less safely", "",
			"change it with `nats stream edit`; what cannot be changed (retention, storage) needs a new stream: stop Headroom, move the messages, run `headroom migrate`",
		},
		{
			"nats.replicas", service, "", "streams have fewer than three copies in a cluster, or an even number, or a copy is away or behind",
			"set HEADROOM_NATS_REPLICAS to 3 and `nats stream edit --replicas 3` what exists; start the server that is away",
		},
		{
			"nats.sync", service, "", "a server syncs to the disk later than it acknowledges, and there are no three copies: its machine's power cut loses messages",
			"set `sync_interval: always` in the jetstream block of every server, or run three servers with HEADROOM_NATS_REPLICAS=3; docs/durability.md says what each costs",
		},
		{
			"nats.lag", service, "an event has waited for more than 15 minutes", "an event has waited for more than a minute",
			"see that `headroom serve` runs and what its log says; more instances, or a larger HEADROOM_WORKERS, share the work",
		},
		{
			"nats.deadletters", service, "", "there are messages that could not be taken",
			"read the reason with `headroom deadletters list`, mend the cause, then replay or drop them",
		},
		{
			"nats.storage", service, "the account or the server has used 95 % of its storage for streams", "80 %",
			"raise max_storage (max_file_store), or add a disk: a full server refuses decisions",
		},
		{
			"nats.payload", service, "max_payload is under 64 KB: a decision may not fit", "max_payload is under 1 MB, the server's own default",
			"set max_payload to 1MB in the server's configuration",
		},
	}
}

// natsPatient is a NATS that answers; what it would not tell is nil, with the error.
type natsPatient struct {
	conn *nats.Conn
	js   jetstream.JetStream

	account    *jetstream.AccountInfo
	accountErr error
	streams    schemas.Inspection
	streamsErr error
	server     *natsServer
}

// natsServer is what the system account lets others know of a server.
type natsServer struct {
	JetStream struct {
		Config struct {
			MaxStorage   int64         `json:"max_storage"`
			SyncInterval time.Duration `json:"sync_interval"`
			SyncAlways   bool          `json:"sync_always"`
		} `json:"config"`
		Stats struct {
			Storage uint64 `json:"storage"`
		} `json:"stats"`
	} `json:"jetstream"`
}

// natsSystemPatience bounds a question that most accounts may not ask and get no answer to.
const natsSystemPatience = time.Second

func (d *doctor) reachNATS(ctx context.Context) {
	if d.faulty["HEADROOM_NATS_URL"] || d.faulty["HEADROOM_NATS_CREDS"] {
		d.found("nats.reachable", fails("not checked: its settings have a fault"))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	conn, err := nats.Connect(d.config.NATSURL.Reveal(), append(natsIdentity(d.config), nats.Timeout(natsDialTimeout), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...) // a question that is not allowed is one without an answer
	if err == nil {
		if err = checkNATS(ctx, conn); err != nil {
			conn.Close()
		}
	}
	if err != nil {
		d.found("nats.reachable", fails("no server answers at %s: %v", d.config.NATSURL, err).with("error", err.Error()))
		return
	}
	d.found("nats.reachable", passes("a server answers at %s", d.config.NATSURL).with("server", conn.ConnectedServerName()))
	d.nats = &natsPatient{conn: conn}
	d.nats.ask(ctx, d.config.topology())
}

func (p *natsPatient) ask(ctx context.Context, topology schemas.Topology) {
	if p.js, p.accountErr = jetstream.New(p.conn); p.accountErr != nil {
		return
	}
	if p.account, p.accountErr = p.js.AccountInfo(ctx); p.accountErr != nil {
		return
	}
	p.streams, p.streamsErr = topology.Inspect(ctx, p.js)
	p.server = askSystem(ctx, p.conn)
}

// askSystem asks the server about itself. Only the system account knows, and another one
// has to have been given this question by it: nil is no answer.
func askSystem(ctx context.Context, conn *nats.Conn) *natsServer {
	ctx, cancel := context.WithTimeout(ctx, natsSystemPatience)
	defer cancel()
	answer, err := conn.RequestWithContext(ctx, "$SYS.REQ.SERVER."+conn.ConnectedServerId()+".VARZ", nil)
	if err != nil {
		return nil
	}
	var body struct {
		Data *natsServer `json:"data"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return nil
	}
	return body.Data
}

// natsChecks are those of a NATS that answers; what rests on JetStream needs that too.
func (d *doctor) natsChecks() []examination {
	if d.nats == nil {
		return nil
	}
	p := d.nats
	checks := []examination{
		{"nats.version", func(context.Context) judgement { return judgeNATSVersion(p.conn.ConnectedServerVersion()) }},
		{"nats.payload", func(context.Context) judgement { return judgePayload(p.conn.MaxPayload()) }},
		{"nats.jetstream", func(context.Context) judgement { return judgeJetStream(p.account, p.accountErr) }},
	}
	if p.accountErr != nil {
		return checks
	}
	checks = append(checks,
		examination{"nats.storage", func(context.Context) judgement { return judgeNATSStorage(p.account, p.server) }},
		examination{"nats.sync", func(context.Context) judgement { return judgeSync(d.config.NATSReplicas, p.server) }})
	return append(checks, d.streamChecks()...)
}

func judgeNATSVersion(version string) judgement {
	err := schemas.CheckServerVersion(version)
	if err != nil {
		return fails("%v", err).with("version", version)
	}
	return passes("nats-server %s", version).with("version", version)
}

func judgePayload(most int64) judgement {
	status := statusOK
	switch {
	case most < 64<<10:
		status = statusFail
	case most < 1<<20:
		status = statusWarn
	}
	return judged(status, "a message may have %d bytes", most).with("max_payload", most)
}

func judgeJetStream(account *jetstream.AccountInfo, err error) judgement {
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fails("JetStream is not on: %v", err).with("error", err.Error())
	case err != nil:
		return fails("JetStream does not answer: %v", err).with("error", err.Error())
	}
	return passes("JetStream answers").with("streams", account.Streams).with("domain", account.Domain)
}

// judgeNATSStorage takes the fuller of what the account may use and what the server has,
// where they are known.
func judgeNATSStorage(account *jetstream.AccountInfo, server *natsServer) judgement {
	share := func(of string, used uint64, most int64) judgement {
		return judged(byShare(float64(used), float64(most)), "%s has used %d of %d bytes for streams", of, used, most).
			with("used", used).with("limit", most)
	}
	all := []judgement{passes("the account has used %d bytes for streams and has no bound of its own", account.Store).
		with("used", account.Store).with("limit", nil)}
	if account.Limits.MaxStore > 0 {
		all = []judgement{share("the account", account.Store, account.Limits.MaxStore)}
	}
	for _, name := range sortedKeys(account.Tiers) {
		if tier := account.Tiers[name]; tier.Limits.MaxStore > 0 {
			all = append(all, share(fmt.Sprintf("the account's tier %s", name), tier.Store, tier.Limits.MaxStore))
		}
	}
	if server != nil && server.JetStream.Config.MaxStorage > 0 {
		all = append(all, share("the server", server.JetStream.Stats.Storage, server.JetStream.Config.MaxStorage))
	}
	return worst(all...)
}

func judgeSync(replicas int, server *natsServer) judgement {
	j := unknowable("when the server syncs to the disk is not told to this account: see that it is `sync_interval: always`").with("sync", nil)
	switch {
	case server != nil && server.JetStream.Config.SyncAlways:
		j = passes("the server syncs to the disk before it acknowledges").with("sync", "always")
	case replicas >= 3:
		j = passes("%d servers have a message before it is acknowledged", replicas).with("sync", nil)
	case server != nil:
		every := server.JetStream.Config.SyncInterval.String()
		j = warns("the server syncs to the disk every %s, and acknowledges before", every).with("sync", every)
	}
	return j.with("replicas", replicas)
}
