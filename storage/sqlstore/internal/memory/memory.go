// Package memory remembers slots and deployments, so that a step need not read
// them.
package memory

import (
	"sync"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A Memory holds slots and deployments as this process's last commit left them.
//
// It is right as long as nobody else commits. The log shows whether somebody
// has: at is where the log ended after this process's last commit, and a commit
// that was decided from memory goes ahead only if the log still ends there.
//
// The result of a read goes in if no commit has touched it since the read
// began. From then on each commit keeps it up to date. Commits come one at a
// time, and update the memory before their callers continue.
type Memory struct {
	limit int
	// Pause is how long nothing is recalled after somebody else has committed,
	// because that is likely to happen again. It is set before the first use.
	Pause time.Duration

	mu    sync.Mutex
	at    int64     // unknown if negative, and then nothing is known
	until time.Time // nothing is recalled before
	known map[SlotKey]*remembered
	// reading are the keys that are being read, with those who do.
	reading map[SlotKey]*reading
}

// deploymentIndex takes the place of an index in the key of a deployment. There
// are not slots below 0.
const deploymentIndex = -1

// A SlotKey names a slot, or with deploymentIndex a deployment.
type SlotKey struct {
	GUID  string
	Index int
}

// Record stands for the slot among the keys of records.
func (k SlotKey) Record() storage.RecordKey {
	return storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: k.GUID, Index: k.Index}
}

// A remembered is what is known of one key. It is not changed, but replaced.
type remembered struct {
	records    []rememberedRecord
	deployment *lrp.Deployment // bare; nil if there is none
}

// tag is the tag of the deployment. Without a deployment it is the zero tag, which
// no deployment has.
func (x *remembered) tag() lrp.ModificationTag {
	if x.deployment == nil {
		return lrp.ModificationTag{}
	}
	return x.deployment.ModificationTag
}

// A rememberedRecord is encoded as in the database, but never encrypted. So it
// is small, and each recall returns a value of its own.
type rememberedRecord struct {
	definitionID string
	presence     lrp.Presence
	data         []byte
	stopping     time.Time
}

type reading struct {
	by      int
	touched bool
}

// An Origin is what a batch was decided on. The zero value means that nothing
// was remembered.
type Origin struct {
	Key              SlotKey
	slot, deployment *remembered
}

// othersPause is what a memory begins with.
const othersPause = time.Second

// New makes a memory of at most limit slots and deployments.
func New(limit int) *Memory {
	return &Memory{limit: limit, Pause: othersPause, at: -1, known: make(map[SlotKey]*remembered), reading: make(map[SlotKey]*reading)}
}

// Recall is that of [storage.Recaller].
func (m *Memory) Recall(processGUID string, index int) (storage.Recollection, bool) {
	key := SlotKey{processGUID, index}
	m.mu.Lock()
	slot, deployment := m.known[key], m.known[SlotKey{processGUID, deploymentIndex}]
	pause := !m.until.IsZero() && time.Now().Before(m.until)
	m.mu.Unlock()
	if slot == nil || deployment == nil || pause || index < 0 {
		return storage.Recollection{}, false
	}
	r := storage.Recollection{
		Slot:       lrp.Slot{ProcessGUID: processGUID, Index: index},
		Deployment: deployment.deployment,
		Origin:     &Origin{key, slot, deployment},
	}
	var names storage.Decoder
	for i := range slot.records {
		x := &slot.records[i]
		record := lrp.ActualLRP{Key: lrp.Key{ProcessGUID: processGUID, DefinitionID: x.definitionID, Index: index}, Presence: x.presence}
		if names.ActualLRP(x.data, &record) != nil {
			return storage.Recollection{}, false // let a read tell
		}
		record.Stopping = x.stopping
		r.Slot.Records = append(r.Slot.Records, record)
	}
	lrp.SortRecords(r.Slot.Records)
	return r, true
}

// Begin notes that a slot and its deployment are about to be read.
func (m *Memory) Begin(key SlotKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range [...]SlotKey{key, {key.GUID, deploymentIndex}} {
		r := m.reading[k]
		if r == nil {
			r = new(reading)
			m.reading[k] = r
		}
		r.by++
	}
}

// End remembers what was read, unless a commit came in between.
func (m *Memory) End(key SlotKey, records []lrp.ActualLRP, bare *lrp.Deployment, err error) {
	var slot, deployment *remembered
	if err == nil {
		slot, deployment = &remembered{}, &remembered{deployment: bare}
		for i := range records {
			r := &records[i]
			slot.records = append(slot.records, rememberedRecord{r.DefinitionID, r.Presence, storage.AppendActualLRP(nil, r), r.Stopping})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learn(key, slot)
	m.learn(SlotKey{key.GUID, deploymentIndex}, deployment)
}

// learn ends the reading of a key. x is what was found, or nil.
func (m *Memory) learn(k SlotKey, x *remembered) {
	r := m.reading[k]
	if r.by--; r.by == 0 {
		delete(m.reading, k)
	}
	if x != nil && m.at >= 0 && !r.touched && m.known[k] == nil {
		m.put(k, x)
	}
}

// put makes room by forgetting any other entry.
func (m *Memory) put(k SlotKey, x *remembered) {
	if m.limit <= 0 {
		return
	}
	if m.known[k] != nil {
		m.known[k] = x
		return
	}
	for other := range m.known {
		if len(m.known) < m.limit {
			break
		}
		delete(m.known, other)
	}
	m.known[k] = x
}

// touch is what is known of a key that a commit has written.
func (m *Memory) touch(k SlotKey) *remembered {
	if r := m.reading[k]; r != nil {
		r.touched = true
	}
	return m.known[k]
}

// Forget drops everything, because it is unknown what was committed.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.at = -1
}

func (m *Memory) clear() {
	clear(m.known)
	for _, r := range m.reading {
		r.touched = true
	}
}

// LogEnd is where the log must end for the memory to be right.
func (m *Memory) LogEnd() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// Holds reports whether the batch was decided on what this process's last
// commit left.
func (m *Memory) Holds(o *Origin) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isNow(o)
}

// isNow compares deployments by their tags, because one of many instances may
// have been forgotten and read again for another instance.
func (m *Memory) isNow(o *Origin) bool {
	d := m.known[SlotKey{o.Key.GUID, deploymentIndex}]
	return o.slot != nil && m.known[o.Key] == o.slot && d != nil && d.tag() == o.deployment.tag()
}

// A Write is what a commit has done to one record.
type Write struct {
	Key storage.RecordKey
	// Record is the ActualLRP as storage.AppendActualLRP encodes it, nil if it is
	// gone; deployment the bare deployment.
	Record     []byte
	Stopping   time.Time // of the ActualLRP
	Deployment *lrp.Deployment
	// Moved: the record has gone into quarantine.
	Moved bool
}

// Note records the writes of a transaction of this process. The log ends with
// its events.
func (m *Memory) Note(newest, events int64, writes []Write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if newest-events != m.at {
		if m.at >= 0 {
			m.until = time.Now().Add(m.Pause)
		}
		m.clear()
	}
	m.at = newest
	for i := range writes {
		m.noteWrite(&writes[i])
	}
}

func (m *Memory) noteWrite(c *Write) {
	switch {
	case c.Moved:
		m.drop(SlotKey{c.Key.GUID, c.Key.Index})
		m.drop(SlotKey{c.Key.GUID, deploymentIndex})
	case c.Key.Kind == storage.DeploymentRecord:
		k := SlotKey{c.Key.GUID, deploymentIndex}
		m.touch(k)
		m.put(k, &remembered{deployment: c.Deployment})
	case c.Key.Kind == storage.ActualLRPRecord:
		k := SlotKey{c.Key.GUID, c.Key.Index}
		before := m.touch(k)
		if before == nil {
			return // one record is not the whole slot
		}
		after := &remembered{}
		for _, r := range before.records {
			if r.definitionID != c.Key.DefinitionID || r.presence != lrp.Presence(c.Key.Presence) {
				after.records = append(after.records, r)
			}
		}
		if c.Record != nil {
			after.records = append(after.records, rememberedRecord{c.Key.DefinitionID, lrp.Presence(c.Key.Presence), c.Record, c.Stopping})
		}
		m.put(k, after)
	}
}

func (m *Memory) drop(k SlotKey) {
	m.touch(k)
	delete(m.known, k)
}

// Doubt drops what the origin of a refused batch rests on, if it is still
// remembered: somebody has written it behind the store's back.
func (m *Memory) Doubt(o *Origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isNow(o) {
		m.drop(o.Key)
		m.drop(SlotKey{o.Key.GUID, deploymentIndex})
	}
}

// Sizes are how many slots and deployments are remembered, and how many are being
// read.
func (m *Memory) Sizes() (remembered, reading int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.known), len(m.reading)
}
