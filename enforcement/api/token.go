package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// Scope is what a token may do.
type Scope string

const (
	// ScopeRead is for every GET, and for checks that consume nothing.
	ScopeRead Scope = "read"
	// ScopeExecute is for executions, consume and release.
	ScopeExecute Scope = "execute"
	// ScopeAdmin is for invalidations and for choosing what stays unlocked, and holds
	// the other two.
	ScopeAdmin Scope = "admin"
)

var scopes = []Scope{ScopeRead, ScopeExecute, ScopeAdmin}

// minTokenLength is the shortest token that is accepted, in characters: what is
// shorter can be guessed.
const minTokenLength = 16

// Token is who may ask. The secret itself is not kept.
type Token struct {
	Name   string
	Scopes []Scope
	digest [sha256.Size]byte
}

// May reports whether the token has the scope.
func (t Token) May(scope Scope) bool {
	return slices.Contains(t.Scopes, scope) || slices.Contains(t.Scopes, ScopeAdmin)
}

// Tokens are those that are accepted. Without any, everybody may do everything: that
// is for an address which only this machine reaches.
type Tokens []Token

// everybody is who asks where there are no tokens.
func everybody() Token { return Token{Name: "loopback", Scopes: []Scope{ScopeAdmin}} }

// ParseTokens reads a list of name:token[:scope+scope], with commas or line ends
// between and, around an entry, no blanks. Without scopes a token may read and
// execute. The error says what is wrong with which entry, and shows no token.
func ParseTokens(text string) (Tokens, error) {
	if text == "" {
		return nil, nil
	}
	var tokens Tokens
	lines := strings.NewReplacer("\r\n", ",", "\n", ",").Replace(strings.TrimRight(text, "\r\n"))
	for i, entry := range strings.Split(lines, ",") {
		token, err := parseToken(entry)
		if err != nil {
			return nil, fmt.Errorf("token %d %w", i+1, err)
		}
		for _, other := range tokens {
			if other.Name == token.Name {
				return nil, fmt.Errorf("token %d has the name of another, %s", i+1, token.Name)
			}
			if other.digest == token.digest {
				return nil, fmt.Errorf("token %d (%s) is the same as that of %s", i+1, token.Name, other.Name)
			}
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

func parseToken(entry string) (Token, error) {
	if strings.TrimSpace(entry) != entry || entry == "" {
		return Token{}, errors.New("is empty or has blanks around it")
	}
	parts := strings.Split(entry, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return Token{}, errors.New("must be name:token or name:token:scope+scope")
	}
	name, secret := parts[0], parts[1]
	switch {
	case !schemas.ValidID(name):
		return Token{}, errors.New("has no name before the first colon: 1 to 128 letters, digits, dashes and underscores")
	case len(secret) < minTokenLength:
		return Token{}, fmt.Errorf("(%s) has fewer than %d characters; make one with: openssl rand -hex 32", name, minTokenLength)
	case strings.ContainsFunc(secret, func(r rune) bool { return !tokenCharacter(r) }):
		return Token{}, fmt.Errorf("(%s) may hold letters, digits and the characters - . _ ~ + / = only", name)
	}
	token := Token{Name: name, Scopes: []Scope{ScopeRead, ScopeExecute}, digest: sha256.Sum256([]byte(secret))}
	if len(parts) == 3 {
		token.Scopes = nil
		for word := range strings.SplitSeq(parts[2], "+") {
			if !slices.Contains(scopes, Scope(word)) {
				return Token{}, fmt.Errorf("(%s) has a scope that is none of read, execute, admin", name)
			}
			token.Scopes = append(token.Scopes, Scope(word))
		}
	}
	return token, nil
}

// tokenCharacter is what a bearer token may hold (RFC 6750).
func tokenCharacter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~+/=", r)
}

// admit finds who asks, and whether that may be asked. Hashed, all secrets are of one
// length, and each is looked at: the time tells nothing of how near a guess was.
func (t Tokens) admit(r *http.Request, scope Scope) (Token, *problems.Problem) {
	if len(t) == 0 {
		// A page of another site, open in a browser of this machine, is not everybody.
		if new(http.CrossOriginProtection).Check(r) != nil {
			return Token{}, problems.New(problems.Unauthorized, "a web page of another origin may not ask without a token: set HEADROOM_API_TOKENS")
		}
		return everybody(), nil
	}
	fields := r.Header.Values("Authorization")
	if len(fields) != 1 {
		return Token{}, problems.New(problems.Unauthorized, "send one Authorization field: Bearer and a token")
	}
	scheme, secret, _ := strings.Cut(fields[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Token{}, problems.New(problems.Unauthorized, "send the Authorization field as Bearer and a token")
	}
	digest := sha256.Sum256([]byte(strings.TrimLeft(secret, " ")))
	var found Token
	known := 0
	for _, token := range t {
		if subtle.ConstantTimeCompare(token.digest[:], digest[:]) == 1 {
			found, known = token, 1
		}
	}
	if known == 0 {
		return Token{}, problems.New(problems.Unauthorized, "this token is not known")
	}
	if !found.May(scope) {
		p := problems.New(problems.Scope, fmt.Sprintf("token %s may not do this: it lacks scope %s", found.Name, scope))
		p.Scope = string(scope)
		return Token{}, p
	}
	return found, nil
}

// challenge says how to be let in (RFC 6750, section 3).
func challenge(h http.Header, p *problems.Problem) {
	switch p.Slug() {
	case problems.Unauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="headroom"`)
	case problems.Scope:
		h.Set("WWW-Authenticate", `Bearer realm="headroom", error="insufficient_scope", scope="`+p.Scope+`"`)
	}
}

// Require lets only those through to next who hold the scope.
func (t Tokens) Require(scope Scope, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, p := t.admit(r, scope); p != nil {
			challenge(w.Header(), p)
			p.Occurred().Write(w, time.Time{})
			return
		}
		next.ServeHTTP(w, r)
	})
}
