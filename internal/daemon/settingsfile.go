package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/diegosdk/diego/internal/spelling"
)

// maxFileBytes is the longest file of settings.
const maxFileBytes = 1 << 20

// read reads the settings from a file: one JSON object, each member of which is
// a setting. A problem has the number of its line.
func (l *loader) read(data []byte) {
	at := func(offset int64) string {
		offset = min(max(offset, 0), int64(len(data)))
		return l.file + ":" + strconv.Itoa(bytes.Count(data[:offset], []byte("\n"))+1)
	}
	if len(data) > maxFileBytes {
		l.problem(l.file, "the file", "", fmt.Sprintf("want at most %d bytes", maxFileBytes))
		return
	}
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := int64(len(data))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = syntax.Offset - 1
		}
		text := err.Error()
		if spelling.YAML.Match(data) {
			text += "; this looks like YAML, and settings are JSON (yq -o json makes one of the other)"
		}
		l.problem(at(offset), "not JSON", text, `want an object such as {"name": "value"}`)
		return
	}
	if _, ok := whole.(map[string]any); !ok {
		l.problem(at(0), "the file", "", `want an object such as {"name": "value"}`)
		return
	}
	// The text is an object, so nothing below can fail.
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token()
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		where := at(d.InputOffset() - 1)
		var raw json.RawMessage
		_ = d.Decode(&raw)
		l.member(where, name, raw)
	}
}

// member reads one member of the file.
func (l *loader) member(where, name string, raw json.RawMessage) {
	f := l.find(name)
	switch {
	case f == nil:
		l.problem(where, name, "", l.unknown(name))
		return
	case f.where != "":
		l.problem(where, name, "", "given twice; the first is at "+f.where)
		return
	}
	f.where = where
	if want := f.decode(raw); want != "" {
		l.problem(where, name, f.shown(string(raw)), want)
		f.wrong = true
	}
}

// unknown suggests a known name in place of an unknown one.
func (l *loader) unknown(name string) string {
	known := make([]string, len(l.fields))
	for i, f := range l.fields {
		known[i] = f.name
	}
	if guess := spelling.Nearest(name, known); guess != "" {
		return fmt.Sprintf("no such setting; did you mean %s?", guess)
	}
	return "no such setting; -h lists them"
}

// decode sets the field from JSON. It returns what would be accepted, or "" if
// raw was.
func (f *field) decode(raw json.RawMessage) (want string) {
	want = "want " + f.want()
	var text string
	isText := raw[0] == '"' && json.Unmarshal(raw, &text) == nil
	switch f.value.Interface().(type) {
	case string, time.Duration:
		if !isText {
			return want + ", in quotes"
		}
		return f.parse(text)
	case []string:
		var list []string
		if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
			return want + `, such as ["a", "b"]`
		}
		return f.setList(list)
	case map[string]string:
		var pairs map[string]string
		if raw[0] != '{' || json.Unmarshal(raw, &pairs) != nil {
			return want + `, such as {"a": "1"}`
		}
		f.value.Set(reflect.ValueOf(pairs))
		return ""
	}
	if isText {
		return want + ", without quotes"
	}
	return f.parse(string(raw))
}
