package subscriptions

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxCatalogSize bounds a catalog file, in bytes: room for several hundred plans.
	MaxCatalogSize = 256 << 10
	// maxNesting bounds what the YAML parser is given; a catalog needs five levels.
	maxNesting = 32
)

// readYAML returns the root of a file's only document, or the one fault that
// keeps the file from being read at all.
func readYAML(body []byte) (root ast.Node, fault *Fault) {
	defer func() {
		if cause := recover(); cause != nil {
			root, fault = nil, &Fault{Detail: fmt.Sprintf("cannot be read as YAML: %v", cause)}
		}
	}()
	switch {
	case len(body) > MaxCatalogSize:
		return nil, &Fault{Detail: fmt.Sprintf("has %d bytes, more than the %d allowed", len(body), MaxCatalogSize)}
	case !utf8.Valid(body):
		return nil, &Fault{Detail: "is not text in UTF-8"}
	}
	tokens := lexer.Tokenize(string(body))
	if deep := tooDeep(tokens); deep != nil {
		return nil, faultAt(deep, "", fmt.Sprintf("is nested more than %d levels deep; a catalog needs five", maxNesting))
	}
	// Duplicate keys are let through so that the walk reports every one of them.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxFault(err)
	}
	return onlyDocument(file)
}

func onlyDocument(file *ast.File) (ast.Node, *Fault) {
	var root ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.DirectiveNode:
			continue
		}
		if root != nil {
			return nil, faultAt(doc.Body.GetToken(), "", "is a second YAML document; a catalog is one, without ---")
		}
		root = doc.Body
	}
	if root == nil {
		return nil, &Fault{Line: 1, Column: 1, Detail: "is empty; write the key plans with at least one plan"}
	}
	return root, nil
}

// tooDeep is the first token nested too deeply in brackets or dashes, which
// would cost the parser quadratic time.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if brackets+dashes > maxNesting {
			return t
		}
	}
	return nil
}

func syntaxFault(err error) *Fault {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return faultAt(syntax.Token, "", "is not valid YAML: "+syntax.Message)
	}
	return &Fault{Detail: "is not valid YAML: " + err.Error()}
}

func faultAt(t *token.Token, path, detail string) *Fault {
	fault := &Fault{Path: path, Detail: detail}
	if t != nil && t.Position != nil {
		fault.Line, fault.Column = t.Position.Line, t.Position.Column
	}
	return fault
}
