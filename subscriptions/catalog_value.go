package subscriptions

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/headroomhq/headroom/schemas"
)

const (
	wordUnlimited = "unlimited"
	// maxExact is the largest number that a counter in Redis holds exactly: its
	// scripts calculate in doubles.
	maxExact = 1<<53 - 1
	// maxMinutes is a century; a duration in nanoseconds overflows near three.
	maxMinutes = 100 * 366 * 24 * 60
)

// maxOf is the largest number that a limit may be. Megabytes become bytes and
// minutes nanoseconds, and must still be exact then.
func maxOf(limit string) int64 {
	switch limit {
	case schemas.LimitPayloadMB, schemas.LimitStorageMB:
		return maxExact / schemas.BytesPerMegabyte
	case schemas.LimitDurationMinutes:
		return maxMinutes
	default:
		return maxExact
	}
}

// entry is one key of a map with its value.
type entry struct {
	key, path string
	token     *token.Token
	value     ast.Node
}

// entries lists a map's keys in order, each once. ok is false where there is no
// map; the fault then says what should stand there.
func (p *catalogParser) entries(of entry, want string) (list []entry, ok bool) {
	node, ok := p.plain(of.value, of.path)
	if !ok {
		return nil, false
	}
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		at := of.token
		if at == nil {
			at = node.GetToken()
		}
		p.fault(at, of.path, "must be "+want)
		return nil, false
	}
	first := map[string]int{}
	for _, pair := range mapping.Values {
		key := keyText(pair.Key)
		e := entry{key: key, path: key, token: pair.Key.GetToken(), value: pair.Value}
		if of.path != "" {
			e.path = of.path + "." + key
		}
		if line, again := first[key]; again {
			p.fault(e.token, e.path, fmt.Sprintf("is there twice, first on line %d; keep one", line))
			continue
		}
		first[key] = e.token.Position.Line
		p.places[e.path] = e.token
		list = append(list, e)
	}
	return list, true
}

func keyText(key ast.MapKeyNode) string {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value
	case *ast.MappingKeyNode:
		if text, ok := k.Value.(*ast.StringNode); ok {
			return text.Value
		}
		return k.Value.GetToken().Value
	default:
		return key.GetToken().Value
	}
}

// plain is the node itself; ok is false where it is an anchor, an alias or a tag.
func (p *catalogParser) plain(node ast.Node, path string) (_ ast.Node, ok bool) {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		p.fault(node.GetToken(), path, "uses a YAML anchor, alias or tag; write the value out")
		return nil, false
	default:
		return node, true
	}
}

func (p *catalogParser) limit(e entry, most int64) schemas.Limit {
	node, ok := p.plain(e.value, e.path)
	if !ok {
		return schemas.Limit{}
	}
	text := scalarText(node)
	switch text {
	case wordUnlimited:
		return schemas.Unlimited
	case "-1":
		if !isQuoted(node) {
			return schemas.Unlimited
		}
	}
	n, detail := wholeNumber(node, text, most)
	if detail != "" {
		p.fault(e.token, e.path, detail+"; write a whole number from 0, or unlimited")
	}
	return schemas.LimitOf(n)
}

func (p *catalogParser) rank(e entry) int32 {
	node, ok := p.plain(e.value, e.path)
	if !ok {
		return rankUnset
	}
	n, detail := wholeNumber(node, scalarText(node), math.MaxInt32)
	if detail != "" {
		p.fault(e.token, e.path, detail+"; write a whole number from 0, higher for the plan that wins")
		return rankUnset
	}
	return int32(n)
}

// wholeNumber reads a number of plain decimal digits; detail says why it
// cannot. YAML's other forms (hexadecimal, octal, 1_000, 1e3) are refused, since
// readers disagree about them.
func wholeNumber(node ast.Node, text string, most int64) (n int64, detail string) {
	digits := strings.TrimPrefix(text, "-")
	switch {
	case node.Type() == ast.NullType:
		return 0, "has no value"
	case node.Type() == ast.InfinityType:
		return 0, fmt.Sprintf("is %s", text)
	case isQuoted(node) && isDigits(digits):
		return 0, fmt.Sprintf("is text (%q); remove the quotes", text)
	case isDigits(digits) && len(digits) > 1 && digits[0] == '0':
		return 0, fmt.Sprintf("is %s, with a leading zero", text)
	case isDigits(digits) && text != digits:
		return 0, fmt.Sprintf("is %s; a negative number means nothing here", text)
	case isDigits(digits):
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > most {
			return 0, fmt.Sprintf("is %s, more than the largest allowed, %d", text, most)
		}
		return n, ""
	case node.Type() == ast.FloatType:
		return 0, fmt.Sprintf("is %s, not a whole number", text)
	case node.Type() == ast.MappingType || node.Type() == ast.SequenceType:
		return 0, "is a map or a list, not a number"
	default:
		return 0, fmt.Sprintf("is %q, not a number in decimal digits", text)
	}
}

func scalarText(node ast.Node) string {
	if text, ok := node.(*ast.StringNode); ok {
		return text.Value
	}
	return node.GetToken().Value
}

func isQuoted(node ast.Node) bool {
	switch node.GetToken().Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		return true
	default:
		return false
	}
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
