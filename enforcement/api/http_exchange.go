package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// exchange is one request whose parts were found right.
type exchange struct {
	route   route
	token   Token
	request *http.Request
	header  http.Header
	now     func() time.Time

	query url.Values
	// key is the Idempotency-Key, empty without one.
	key string
	// body is the body written in one way: the same for the same request.
	body []byte
}

// idRule is schemas.ValidID for a person, and idPattern for a machine.
const (
	idRule    = "must be " + schemas.IDRule
	idPattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"
)

// textPattern is text that can be stored, for a machine.
const textPattern = `^[^\x00]*$`

// The names of what stands in a path.
const (
	inWorkspace = "workspace_id"
	inExecution = "execution_id"
	inFeature   = "feature"
)

func (c *exchange) workspace() string { return c.request.PathValue(inWorkspace) }
func (c *exchange) execution() string { return c.request.PathValue(inExecution) }
func (c *exchange) feature() string   { return c.request.PathValue(inFeature) }

// read checks the path, the query, the key and then the body: all the faults of the
// first three together.
func (c *exchange) read(w http.ResponseWriter, body *bodyCheck) error {
	var faults []problems.FieldFault
	for _, name := range c.route.pathNames() {
		if !schemas.ValidID(c.request.PathValue(name)) {
			faults = append(faults, problems.FieldFault{Field: name, Detail: idRule})
		}
	}
	faults = append(faults, c.readQuery()...)
	if c.route.method == http.MethodPost {
		key, fault := idempotencyKey(c.request.Header)
		c.key = key
		if fault != nil {
			faults = append(faults, *fault)
		}
	}
	if len(faults) > 0 {
		return problems.InvalidRequest(faults...)
	}
	return c.readBody(w, body)
}

func (c *exchange) readQuery() []problems.FieldFault {
	query, err := url.ParseQuery(c.request.URL.RawQuery)
	if err != nil {
		return []problems.FieldFault{{Field: "query", Detail: "cannot be read: " + err.Error()}}
	}
	c.query = query
	var faults []problems.FieldFault
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		i := slices.IndexFunc(c.route.query, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			faults = append(faults, problems.FieldFault{Field: name, Detail: "is no parameter of this route"})
		case len(query[name]) > 1:
			faults = append(faults, problems.FieldFault{Field: name, Detail: "must be given once"})
		default:
			if detail := c.route.query[i].check(query.Get(name)); detail != "" {
				faults = append(faults, problems.FieldFault{Field: name, Detail: detail})
			}
		}
	}
	return faults
}

// number is a parameter that was checked to be one, or the default.
func (c *exchange) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(c.query.Get(name)); err == nil {
		return n
	}
	return otherwise
}

func (c *exchange) readBody(w http.ResponseWriter, check *bodyCheck) error {
	if check == nil {
		return nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, c.request.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problems.New(problems.TooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
	case err != nil:
		return problems.New(problems.Malformed, "the body did not arrive as a whole").Because(err)
	case len(raw) > 0:
		if p := mediaType(c.request.Header); p != nil {
			return p
		}
	}
	c.body, err = check.read(raw)
	return err
}

func mediaType(h http.Header) *problems.Problem {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problems.New(problems.MediaType, "a body must not be compressed: leave Content-Encoding out")
	}
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := parameters["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problems.New(problems.MediaType, "a body must be sent with Content-Type: application/json, in UTF-8")
	}
	return nil
}

// decoded is the body as a Go value. It was checked, so it fits.
func decoded[B any](c *exchange) (B, error) {
	var b B
	if err := json.Unmarshal(c.body, &b); err != nil {
		return b, fmt.Errorf("read a body that was checked: %w", err)
	}
	return b, nil
}

// claim is the request under its key.
func (c *exchange) claim() Claim {
	return Claim{
		Token: c.token.Name, Workspace: c.workspace(), Key: c.key,
		Fingerprint: fingerprint(c.request.Method, c.request.URL.Path, string(c.body)),
	}
}

// source is who asks, as the source of the events that the request makes.
func (c *exchange) source() string { return "/api/" + c.token.Name }

// event is the id of the event that the request makes: a request with a key is the
// same event each time.
func (c *exchange) event() string {
	if c.key != "" {
		return c.key
	}
	return newID()
}

func encoded(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return body, nil
}
