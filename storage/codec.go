package storage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// This file holds the encodings that stores on disk share. Each begins with a
// version byte, and a decoder refuses a version that it does not know.
//
// ActualLRPs and their events are binary, because there are very many of them:
// integers are varints, text is its length and its bytes, times are nanoseconds
// since 1970, with 0 for none. Everything else is JSON.

//
// A release reads an encoding before a later one begins to write it, so that both
// can work on one database: docs/compatibility.md.

const (
	versionJSON   = 1
	versionBinary = 2
	// versionPreferred is versionBinary with the preferred address after each
	// record's other fields. Only what has one is written in it.
	versionPreferred = 3
	// versionStopping is versionPreferred with the time of the order to stop after
	// that. Only events are written in it, and only those about a record that is to
	// stop. Records have that time apart from their other fields: see EncodeStopping.
	versionStopping = 4

	// Encodings to come have the next numbers, up to maxVersion. Anything above is
	// damage, or encrypted.
	newestVersion = versionStopping
	maxVersion    = 15
)

// checkVersion refuses an encoding that does not have the version that is wanted.
func checkVersion(got byte, want ...byte) error {
	switch {
	case slices.Contains(want, got):
		return nil
	case got > newestVersion && got <= maxVersion:
		return fmt.Errorf("its encoding has version %d, and this release knows those up to %d: %w; run that release", got, newestVersion, ErrNewer)
	}
	return fmt.Errorf("its encoding has version %d, want %d", got, want[0])
}

var errTruncated = errors.New("the encoding ends too early")

// Encode returns the versioned encoding of a value with a JSON form: tasks,
// settings and definitions of deployments.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte{versionJSON}, data...), nil
}

// Decode reads an encoding of [Encode] into the value that v points to.
func Decode(data []byte, v any) error {
	if len(data) == 0 {
		return errTruncated
	}
	if err := checkVersion(data[0], versionJSON); err != nil {
		return err
	}
	return json.Unmarshal(data[1:], v)
}

// A bareTask is what [DecodeBareTask] reads of the JSON form of a task. A member
// that is not listed is passed over, which takes no memory and a third to a half
// of the time.
type bareTask struct {
	GUID             string               `json:"task_guid"`
	Domain           string               `json:"domain"`
	Labels           map[string]string    `json:"labels"`
	State            task.State           `json:"state"`
	CellID           string               `json:"cell_id"`
	InstanceGUID     string               `json:"instance_guid"`
	Failed           bool                 `json:"failed"`
	FailureReason    string               `json:"failure_reason"`
	RejectionCount   int                  `json:"rejection_count"`
	RejectionReason  string               `json:"rejection_reason"`
	CreatedAt        executor.Timestamp   `json:"created_at"`
	UpdatedAt        executor.Timestamp   `json:"updated_at"`
	FirstCompletedAt executor.Timestamp   `json:"first_completed_at"`
	ModificationTag  task.ModificationTag `json:"modification_tag"`
}

// DecodeBareTask reads an encoding of a task by [Encode] and returns the task as
// [BareTask] does, but with its labels, by which a filter selects.
func DecodeBareTask(data []byte) (*task.Task, error) {
	var b bareTask
	if err := Decode(data, &b); err != nil {
		return nil, err
	}
	return &task.Task{
		GUID: b.GUID, Domain: b.Domain, Definition: task.Definition{Labels: b.Labels}, State: b.State, CellID: b.CellID, InstanceGUID: b.InstanceGUID,
		Failed: b.Failed, FailureReason: b.FailureReason, RejectionCount: b.RejectionCount, RejectionReason: b.RejectionReason,
		CreatedAt: time.Time(b.CreatedAt), UpdatedAt: time.Time(b.UpdatedAt), FirstCompletedAt: time.Time(b.FirstCompletedAt),
		ModificationTag: b.ModificationTag,
	}, nil
}

// AppendActualLRP appends the encoding of r without its key and presence,
// which a database has in columns, and without its mark Stopping: see
// [EncodeStopping].
func AppendActualLRP(dst []byte, r *lrp.ActualLRP) []byte {
	version := byte(versionBinary)
	if r.PreferredAddress != lrp.PreferNone {
		version = versionPreferred
	}
	return appendFields(append(dst, version), r, version)
}

// EncodeStopping returns the versioned encoding of the mark of an instance that
// is to stop. It is empty for any other instance. A database has the mark in a
// column of its own, so that the previous release can read the record. That
// release may change the record and leave the mark as it was, so the mark says
// which instance it is about.
func EncodeStopping(r *lrp.ActualLRP) []byte {
	if r.Stopping.IsZero() {
		return nil
	}
	dst := binary.AppendVarint([]byte{versionBinary}, executor.Nanoseconds(r.Stopping))
	return appendText(dst, r.InstanceGUID)
}

// DecodeStopping reads an encoding of [EncodeStopping] into r, which has all its
// other fields. It leaves out the mark of an earlier instance.
func DecodeStopping(data []byte, r *lrp.ActualLRP) error {
	if r.Stopping = (time.Time{}); len(data) == 0 {
		return nil
	}
	if err := checkVersion(data[0], versionBinary); err != nil {
		return err
	}
	in := decoding{rest: data[1:]}
	at, guid := executor.Instant(in.int()), in.bytes()
	if err := in.end(); err != nil {
		return err
	}
	if string(guid) == r.InstanceGUID && r.Presence != lrp.Evacuating {
		r.Stopping = at
	}
	return r.Validate()
}

// A Decoder decodes ActualLRPs. It keeps names that many records share, a few
// thousand at most, so that they take memory once. The zero value is ready to
// use, by one goroutine at a time.
type Decoder struct {
	names map[string]string
}

const maxNames = 4096

// Name returns the bytes as a string.
func (d *Decoder) Name(b []byte) string {
	if s, known := d.names[string(b)]; known {
		return s
	}
	s := string(b)
	if d.names == nil || len(d.names) >= maxNames {
		d.names = make(map[string]string)
	}
	d.names[s] = s
	return s
}

// ActualLRP reads an encoding of [AppendActualLRP] into r, whose process guid,
// definition id, index and presence are already set. A record that breaks an
// invariant is an error, and so are bytes left over. r keeps nothing of data.
func (d *Decoder) ActualLRP(data []byte, r *lrp.ActualLRP) error {
	in := decoding{rest: data, names: d}
	if err := in.version(versionBinary, versionPreferred); err != nil {
		return err
	}
	in.fields(r)
	if err := in.end(); err != nil {
		return err
	}
	return r.Validate()
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendKey(dst []byte, r *lrp.ActualLRP) []byte {
	dst = appendText(dst, r.ProcessGUID)
	dst = appendText(dst, r.DefinitionID)
	dst = binary.AppendVarint(dst, int64(r.Index))
	return append(dst, byte(r.Presence))
}

// versionOf is the oldest version that can hold an event with these records, which
// may be nil.
func versionOf(records ...*lrp.ActualLRP) byte {
	version := byte(versionBinary)
	for _, r := range records {
		switch {
		case r == nil:
		case !r.Stopping.IsZero():
			return versionStopping
		case r.PreferredAddress != lrp.PreferNone:
			version = versionPreferred
		}
	}
	return version
}

func appendFields(dst []byte, r *lrp.ActualLRP, version byte) []byte {
	routable := byte(0)
	if r.Routable {
		routable = 1
	}
	dst = append(dst, byte(r.State), routable)
	dst = appendText(dst, r.Domain)
	dst = appendText(dst, r.CellID)
	dst = appendText(dst, r.Zone)
	dst = appendText(dst, r.InstanceGUID)
	dst = appendText(dst, r.Address)
	dst = appendText(dst, r.InstanceAddress)
	dst = binary.AppendUvarint(dst, uint64(len(r.Ports)))
	for _, p := range r.Ports {
		dst = binary.AppendUvarint(dst, uint64(p.ContainerPort))
		dst = binary.AppendUvarint(dst, uint64(p.HostPort))
	}
	dst = binary.AppendVarint(dst, int64(r.CrashCount))
	dst = appendText(dst, r.CrashReason)
	dst = append(dst, byte(r.PlacementError.Reason))
	dst = appendText(dst, r.PlacementError.Detail)
	dst = binary.AppendVarint(dst, executor.Nanoseconds(r.Since))
	dst = binary.AppendVarint(dst, executor.Nanoseconds(r.RunningSince))
	dst = binary.AppendVarint(dst, executor.Nanoseconds(r.ExpiresAt))
	dst = binary.AppendVarint(dst, r.ModificationTag.Epoch)
	dst = binary.AppendVarint(dst, r.ModificationTag.Index)
	if version >= versionPreferred {
		dst = append(dst, byte(r.PreferredAddress))
	}
	if version >= versionStopping {
		dst = binary.AppendVarint(dst, executor.Nanoseconds(r.Stopping))
	}
	return dst
}

// A decoding reads an encoding from the front. After its first error it yields
// zeros.
type decoding struct {
	rest  []byte
	names *Decoder
	err   error
	// encoding is the version of the records.
	encoding byte
}

func (in *decoding) fail(err error) {
	if in.err == nil {
		in.err = err
	}
	in.rest = nil
}

func (in *decoding) version(want ...byte) error {
	if in.encoding = in.byte(); in.err == nil {
		if err := checkVersion(in.encoding, want...); err != nil {
			in.fail(err)
		}
	}
	return in.err
}

func (in *decoding) end() error {
	if len(in.rest) > 0 {
		in.fail(fmt.Errorf("%d bytes too many", len(in.rest)))
	}
	return in.err
}

func (in *decoding) byte() byte {
	if len(in.rest) == 0 {
		in.fail(errTruncated)
		return 0
	}
	b := in.rest[0]
	in.rest = in.rest[1:]
	return b
}

func (in *decoding) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(in.rest)
	if n <= 0 {
		in.fail(errTruncated)
		return 0
	}
	in.rest = in.rest[n:]
	if v > limit {
		in.fail(fmt.Errorf("number %d, want at most %d", v, limit))
		return 0
	}
	return v
}

func (in *decoding) int() int64 {
	v, n := binary.Varint(in.rest)
	if n <= 0 {
		in.fail(errTruncated)
		return 0
	}
	in.rest = in.rest[n:]
	return v
}

func (in *decoding) bytes() []byte {
	n := in.uint(uint64(len(in.rest)))
	if n > uint64(len(in.rest)) {
		in.fail(errTruncated)
		return nil
	}
	b := in.rest[:n]
	in.rest = in.rest[n:]
	return b
}

func (in *decoding) text() string { return string(in.bytes()) }

func (in *decoding) name() string { return in.names.Name(in.bytes()) }

func (in *decoding) key(r *lrp.ActualLRP) {
	r.ProcessGUID = in.text()
	r.DefinitionID = in.text()
	r.Index = int(in.int())
	r.Presence = lrp.Presence(in.byte())
}

func (in *decoding) fields(r *lrp.ActualLRP) {
	r.State = lrp.State(in.byte())
	switch b := in.byte(); b {
	case 0, 1:
		r.Routable = b == 1
	default:
		in.fail(fmt.Errorf("routable is %d, want 0 or 1", b))
	}
	r.Domain = in.name()
	r.CellID = in.name()
	r.Zone = in.name()
	r.InstanceGUID = in.text()
	r.Address = in.name()
	r.InstanceAddress = in.text()
	r.Ports = nil
	if n := in.uint(uint64(len(in.rest))); n > 0 {
		r.Ports = make([]lrp.PortMapping, 0, n)
		for range n {
			r.Ports = append(r.Ports, lrp.PortMapping{ContainerPort: uint16(in.uint(1<<16 - 1)), HostPort: uint16(in.uint(1<<16 - 1))})
		}
	}
	r.CrashCount = int(in.int())
	r.CrashReason = in.text()
	r.PlacementError.Reason = lrp.PlacementReason(in.byte())
	if _, err := r.PlacementError.MarshalText(); err != nil {
		in.fail(err)
	}
	r.PlacementError.Detail = in.text()
	r.Since = executor.Instant(in.int())
	r.RunningSince = executor.Instant(in.int())
	r.ExpiresAt = executor.Instant(in.int())
	r.ModificationTag.Epoch = in.int()
	r.ModificationTag.Index = in.int()
	r.PreferredAddress = lrp.PreferNone
	if in.encoding >= versionPreferred {
		r.PreferredAddress = lrp.PreferredAddress(in.byte())
		if _, err := r.PreferredAddress.MarshalText(); err != nil {
			in.fail(err)
		}
	}
	r.Stopping = time.Time{}
	if in.encoding >= versionStopping {
		r.Stopping = executor.Instant(in.int())
	}
}
