package lrp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/diegosdk/diego/executor"
)

// ActualLRPs are read all the time, so this file writes and reads their JSON
// member by member. encoding/json reads text in any other form, from other
// programs or releases.

// MarshalJSON writes the record as one flat object.
func (r ActualLRP) MarshalJSON() ([]byte, error) { return r.AppendJSON(make([]byte, 0, 512)) }

// AppendJSON appends what MarshalJSON returns. It fails, and appends nothing,
// on a state, a presence, a preferred address or a placement error that does not
// exist, and on a year that RFC 3339 cannot hold.
func (r *ActualLRP) AppendJSON(dst []byte) ([]byte, error) {
	state, err := r.State.MarshalText()
	if err != nil {
		return dst, err
	}
	presence, err := r.Presence.MarshalText()
	if err != nil {
		return dst, err
	}
	preferred, err := r.PreferredAddress.MarshalText()
	if err != nil {
		return dst, err
	}
	placement, err := r.PlacementError.MarshalText()
	if err != nil {
		return dst, err
	}
	begin := len(dst)
	dst = appendText(dst, `{"process_guid":`, r.ProcessGUID)
	dst = appendText(dst, `,"definition_id":`, r.DefinitionID)
	dst = appendInt(dst, `,"index":`, int64(r.Index))
	dst = appendText(dst, `,"domain":`, r.Domain)
	dst = appendText(dst, `,"instance_guid":`, r.InstanceGUID)
	dst = appendText(dst, `,"cell_id":`, r.CellID)
	dst = appendText(dst, `,"address":`, r.Address)
	dst = appendPorts(append(dst, `,"ports":`...), r.Ports)
	if r.InstanceAddress != "" {
		dst = appendText(dst, `,"instance_address":`, r.InstanceAddress)
	}
	if r.PreferredAddress != PreferNone {
		dst = appendText(dst, `,"preferred_address":`, string(preferred))
	}
	dst = appendText(dst, `,"state":`, string(state))
	dst = appendText(dst, `,"presence":`, string(presence))
	dst = appendInt(dst, `,"crash_count":`, int64(r.CrashCount))
	if r.CrashReason != "" {
		dst = appendText(dst, `,"crash_reason":`, r.CrashReason)
	}
	dst = appendText(dst, `,"placement_error":`, string(placement))
	dst = strconv.AppendBool(append(dst, `,"routable":`...), r.Routable)
	if r.Zone != "" {
		dst = appendText(dst, `,"zone":`, r.Zone)
	}
	dst = appendInt(dst, `,"modification_tag":{"epoch":"`, r.ModificationTag.Epoch)
	dst = appendInt(dst, `","index":`, r.ModificationTag.Index)
	if dst, err = appendTime(dst, `},"since":"`, r.Since); err == nil && !r.RunningSince.IsZero() {
		dst, err = appendTime(dst, `,"running_since":"`, r.RunningSince)
	}
	if err == nil && !r.ExpiresAt.IsZero() {
		dst, err = appendTime(dst, `,"expires_at":"`, r.ExpiresAt)
	}
	if err == nil && !r.Stopping.IsZero() {
		dst, err = appendTime(dst, `,"stopping":"`, r.Stopping)
	}
	if err != nil {
		return dst[:begin], err
	}
	return append(r.appendLabels(dst), '}'), nil
}

func (r *ActualLRP) appendLabels(dst []byte) []byte {
	if len(r.InternalRoutes) > 0 {
		text, _ := json.Marshal(r.InternalRoutes) // text can always be written
		dst = append(append(dst, `,"internal_routes":`...), text...)
	}
	if len(r.MetricTags) > 0 {
		text, _ := json.Marshal(r.MetricTags)
		dst = append(append(dst, `,"metric_tags":`...), text...)
	}
	return dst
}

// appendTime appends the text of [executor.Timestamp].
func appendTime(dst []byte, before string, t time.Time) ([]byte, error) {
	text, err := t.UTC().AppendText(append(dst, before...))
	if err != nil {
		return dst, err
	}
	return append(text, '"'), nil
}

func appendInt(dst []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(dst, before...), n, 10)
}

func appendText(dst []byte, before, s string) []byte {
	dst = append(dst, before...)
	if !plain(s) {
		text, _ := json.Marshal(s) // text can always be written
		return append(dst, text...)
	}
	return append(append(append(dst, '"'), s...), '"')
}

func appendPorts(dst []byte, ports []PortMapping) []byte {
	if ports == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, p := range ports {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, `{"container_port":`, int64(p.ContainerPort))
		dst = appendInt(dst, `,"host_port":`, int64(p.HostPort))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// plain reports whether encoding/json writes s unchanged: printable ASCII
// without quotes, backslashes and characters special in HTML.
func plain[T string | []byte](s T) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// UnmarshalJSON reads what MarshalJSON wrote. Unknown states and presences and
// a missing state are errors. Validate checks the rest.
func (r *ActualLRP) UnmarshalJSON(data []byte) error {
	in := written{rest: data}
	if read := in.actualLRP(); in.end() {
		*r = read
		return nil
	}
	var fields actualFields
	w := actualJSON{actualFields: &fields}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if _, err := fields.State.MarshalText(); err != nil {
		return err
	}
	fields.Since = time.Time(w.Since)
	fields.RunningSince = time.Time(w.RunningSince)
	fields.ExpiresAt = time.Time(w.ExpiresAt)
	fields.Stopping = time.Time(w.Stopping)
	*r = ActualLRP(fields)
	return nil
}

// actualJSON is the record without its methods, with its times in their JSON
// form.
type actualJSON struct {
	*actualFields
	Since        executor.Timestamp `json:"since"`
	RunningSince executor.Timestamp `json:"running_since"`
	ExpiresAt    executor.Timestamp `json:"expires_at"`
	Stopping     executor.Timestamp `json:"stopping"`
}

type actualFields ActualLRP

// written parses text that AppendJSON may have made, from the front: the same
// members in the same order, plain text, no negative number. It accepts nothing
// that encoding/json would read differently. On anything else it sets other,
// and its results mean nothing from then on.
type written struct {
	rest  []byte
	other bool
}

func (in *written) actualLRP() (r ActualLRP) {
	r.ProcessGUID = in.text(`{"process_guid":`)
	r.DefinitionID = in.text(`,"definition_id":`)
	r.Index = int(in.int(`,"index":`, math.MaxInt))
	r.Domain = in.text(`,"domain":`)
	r.InstanceGUID = in.text(`,"instance_guid":`)
	r.CellID = in.text(`,"cell_id":`)
	r.Address = in.text(`,"address":`)
	r.Ports = in.ports(`,"ports":`)
	r.InstanceAddress = in.textIf(`,"instance_address":`)
	if preferred := in.textIf(`,"preferred_address":`); preferred != "" {
		in.is(r.PreferredAddress.UnmarshalText([]byte(preferred)) == nil)
	}
	in.is(r.State.UnmarshalText(in.quoted(`,"state":`)) == nil)
	in.is(r.Presence.UnmarshalText(in.quoted(`,"presence":`)) == nil)
	r.CrashCount = int(in.int(`,"crash_count":`, math.MaxInt))
	r.CrashReason = in.textIf(`,"crash_reason":`)
	if placement := in.quoted(`,"placement_error":`); len(placement) > 0 {
		in.is(r.PlacementError.UnmarshalText(placement) == nil)
	}
	if r.Routable = in.skip(`,"routable":true`); !r.Routable {
		in.is(in.skip(`,"routable":false`))
	}
	r.Zone = in.textIf(`,"zone":`)
	r.ModificationTag.Epoch = in.int(`,"modification_tag":{"epoch":"`, math.MaxInt64)
	r.ModificationTag.Index = in.int(`","index":`, math.MaxInt64)
	r.Since = in.time(`},"since":`)
	r.RunningSince = in.timeIf(`,"running_since":`)
	r.ExpiresAt = in.timeIf(`,"expires_at":`)
	r.Stopping = in.timeIf(`,"stopping":`)
	in.is(in.skip(`}`))
	return r
}

// end reports whether all text has been read, without meeting anything other.
func (in *written) end() bool { return !in.other && len(in.rest) == 0 }

func (in *written) is(so bool) { in.other = in.other || !so }

func (in *written) skip(text string) bool {
	if len(in.rest) < len(text) || string(in.rest[:len(text)]) != text {
		return false
	}
	in.rest = in.rest[len(text):]
	return true
}

// quoted reads before and returns the quoted text after it.
func (in *written) quoted(before string) []byte {
	if !in.skip(before) || !in.skip(`"`) {
		in.other = true
		return nil
	}
	text, rest, closed := bytes.Cut(in.rest, []byte{'"'})
	in.is(closed && plain(text))
	in.rest = rest
	return text
}

func (in *written) text(before string) string { return string(in.quoted(before)) }

func (in *written) textIf(before string) string {
	if !bytes.HasPrefix(in.rest, []byte(before)) {
		return ""
	}
	return in.text(before)
}

// int reads before and returns the number after it, from 0 to limit.
func (in *written) int(before string, limit int64) int64 {
	in.is(in.skip(before))
	digits := 0
	for digits < len(in.rest) && '0' <= in.rest[digits] && in.rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(string(in.rest[:digits]), 10, 64)
	in.is(err == nil && n <= limit && (digits == 1 || in.rest[0] != '0'))
	in.rest = in.rest[digits:]
	return n
}

func (in *written) time(before string) (t time.Time) {
	in.is(t.UnmarshalText(in.quoted(before)) == nil)
	return t.UTC()
}

func (in *written) timeIf(before string) time.Time {
	if !bytes.HasPrefix(in.rest, []byte(before)) {
		return time.Time{}
	}
	return in.time(before)
}

func (in *written) ports(before string) []PortMapping {
	in.is(in.skip(before))
	if in.skip("null") {
		return nil
	}
	in.is(in.skip("["))
	ports := []PortMapping{}
	for !in.other && !in.skip("]") {
		in.is(len(ports) == 0 || in.skip(","))
		ports = append(ports, PortMapping{
			ContainerPort: uint16(in.int(`{"container_port":`, math.MaxUint16)),
			HostPort:      uint16(in.int(`,"host_port":`, math.MaxUint16)),
		})
		in.is(in.skip("}"))
	}
	return ports
}
