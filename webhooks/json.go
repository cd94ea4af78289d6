package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// undecodable is a body or object that lacks what is needed, and where. A person
// has to look at it: another try would find the same.
type undecodable struct {
	path, problem string
}

// Error names the path of the field and what is wrong with it.
func (e *undecodable) Error() string { return fmt.Sprintf("%s: %s", e.path, e.problem) }

const missing = "is missing"

// jsonObject is an object of JSON whose fields are read one by one: exact names,
// the last of several with one name, and null is as good as missing. Fields that
// nobody asks for may be anything.
type jsonObject struct {
	path   string
	fields map[string]json.RawMessage
}

func parseObject(path string, raw []byte) (jsonObject, error) {
	o := jsonObject{path: path}
	if err := json.Unmarshal(raw, &o.fields); err != nil {
		return jsonObject{}, &undecodable{path, "is no JSON object"}
	}
	if o.fields == nil {
		return jsonObject{}, &undecodable{path, missing}
	}
	return o, nil
}

func (o jsonObject) at(field string) string {
	if o.path == "" {
		return field
	}
	return o.path + "." + field
}

// has reports whether the field is there and not null.
func (o jsonObject) has(field string) bool {
	raw, there := o.fields[field]
	return there && !bytes.Equal(raw, []byte("null"))
}

// object is the field as an object; the zero jsonObject, whose fields are all
// missing, if it is none.
func (o jsonObject) object(field string) jsonObject {
	if raw := o.fields[field]; len(raw) > 0 && raw[0] == '{' {
		if inner, err := parseObject(o.at(field), raw); err == nil {
			return inner
		}
	}
	return jsonObject{path: o.at(field)}
}

// objects are the elements of a list, {"data": […]} or plain. Elements that are no objects
// are an error: something would be overlooked.
func (o jsonObject) objects(field string) ([]jsonObject, error) {
	raw, path := o.fields[field], o.at(field)
	if inner := o.object(field); inner.has("data") {
		raw, path = inner.fields["data"], inner.at("data")
	}
	if len(raw) == 0 || raw[0] != '[' {
		return nil, nil
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, &undecodable{path, "is no list"}
	}
	list := make([]jsonObject, 0, len(elements))
	for i, element := range elements {
		inner, err := parseObject(fmt.Sprintf("%s[%d]", path, i), element)
		if err != nil {
			return nil, err
		}
		list = append(list, inner)
	}
	return list, nil
}

// text is a text, empty if it is anything else.
func (o jsonObject) text(field string) string {
	var s string
	if json.Unmarshal(o.fields[field], &s) != nil {
		return ""
	}
	return s
}

// id is the id of what the field refers to, which may be expanded to the whole
// object; empty without one that can be stored.
func (o jsonObject) id(field string) string {
	if id := o.text(field); id != "" {
		return storable(id)
	}
	return storable(o.object(field).text("id"))
}

// ownID is the object's own id, which has to be there.
func (o jsonObject) ownID() (string, error) {
	id, err := o.required("id")
	if err == nil && !storableID(id) {
		err = &undecodable{o.at("id"), "is none"}
	}
	return id, err
}

// truth is a boolean and whether it is one.
func (o jsonObject) truth(field string) (value, known bool) {
	switch string(o.fields[field]) {
	case "true":
		return true, true
	case "false":
		return false, true
	default:
		return false, false
	}
}

func (o jsonObject) isTrue(field string) bool {
	value, _ := o.truth(field)
	return value
}

// number is a whole number, also one in a text or with a fraction of zero, and
// whether it is one.
func (o jsonObject) number(field string) (int64, bool) {
	raw := strings.Trim(string(o.fields[field]), `"`)
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// latest is the last second that any of the systems around here can write.
const latest = 253402300799

// instant is Unix seconds. The epoch itself and what lies before it is no instant
// of Stripe's but a field that was never set, so it is nil, as is what is no time.
func (o jsonObject) instant(field string) *time.Time {
	seconds, ok := o.number(field)
	if !ok || seconds <= 0 || seconds > latest {
		return nil
	}
	at := time.Unix(seconds, 0).UTC()
	return &at
}

// texts are the fields of an object that are texts, such as metadata.
func (o jsonObject) texts(field string) map[string]string {
	inner := o.object(field)
	found := make(map[string]string, len(inner.fields))
	for name := range inner.fields {
		if inner.has(name) {
			found[name] = inner.text(name)
		}
	}
	return found
}

// required is a text that has to be there.
func (o jsonObject) required(field string) (string, error) {
	if s := o.text(field); s != "" {
		return s, nil
	}
	return "", &undecodable{o.at(field), missing}
}
