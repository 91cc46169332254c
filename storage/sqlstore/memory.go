package sqlstore

import (
	"sync"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A memory holds slots and deployments as this process's last commit left them.
//
// It is right as long as nobody else commits. Whether somebody has is seen by
// the log: at is where the log ended after this process's last commit, and a
// commit that was decided from memory goes ahead only if it still ends there.
//
// What a read has found goes in if no commit has touched it since the read
// began. From then on each commit keeps it up to date. Commits are one at a
// time, and remember before their callers are told.
type memory struct {
	limit int
	// pause is how long nothing is recalled after somebody else has committed, as
	// it is likely to happen again. It is set before the first use.
	pause time.Duration

	mu    sync.Mutex
	at    int64     // unknown if negative, and then nothing is known
	until time.Time // nothing is recalled before
	known map[slotKey]*remembered
	// reading are the keys that are being read, with those who do.
	reading map[slotKey]*reading
}

// deploymentIndex takes the place of an index in the key of a deployment. There
// are no slots below 0.
const deploymentIndex = -1

// A slotKey names a slot, or with deploymentIndex a deployment.
type slotKey struct {
	guid  string
	index int
}

// record stands for the slot among the keys of records.
func (k slotKey) record() storage.RecordKey {
	return storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: k.guid, Index: k.index}
}

// A remembered is what is known of one key. It is not changed, but replaced.
type remembered struct {
	records    []rememberedRecord
	deployment *lrp.Deployment // bare; nil if there is none
}

// tag is the deployment's; the zero tag, which none has, if there is none.
func (x *remembered) tag() lrp.ModificationTag {
	if x.deployment == nil {
		return lrp.ModificationTag{}
	}
	return x.deployment.ModificationTag
}

// A rememberedRecord is encoded as in the database, but never encrypted: so it
// is small, and whoever recalls it gets a value of his own.
type rememberedRecord struct {
	definitionID string
	presence     lrp.Presence
	data         []byte
}

type reading struct {
	by      int
	touched bool
}

// An origin is what a batch was decided from. The zero value is of nothing that is
// remembered.
type origin struct {
	key              slotKey
	slot, deployment *remembered
}

// othersPause is what a memory begins with.
const othersPause = time.Second

// newMemory makes a memory of at most so many slots and deployments.
func newMemory(limit int) *memory {
	return &memory{limit: limit, pause: othersPause, at: -1, known: make(map[slotKey]*remembered), reading: make(map[slotKey]*reading)}
}

// Recall is that of [storage.Recaller].
func (m *memory) Recall(processGUID string, index int) (storage.Recollection, bool) {
	key := slotKey{processGUID, index}
	m.mu.Lock()
	slot, deployment := m.known[key], m.known[slotKey{processGUID, deploymentIndex}]
	pause := !m.until.IsZero() && time.Now().Before(m.until)
	m.mu.Unlock()
	if slot == nil || deployment == nil || pause || index < 0 {
		return storage.Recollection{}, false
	}
	r := storage.Recollection{
		Slot:       lrp.Slot{ProcessGUID: processGUID, Index: index},
		Deployment: deployment.deployment,
		Origin:     &origin{key, slot, deployment},
	}
	var names storage.Decoder
	for i := range slot.records {
		x := &slot.records[i]
		record := lrp.ActualLRP{Key: lrp.Key{ProcessGUID: processGUID, DefinitionID: x.definitionID, Index: index}, Presence: x.presence}
		if names.ActualLRP(x.data, &record) != nil {
			return storage.Recollection{}, false // let a read tell
		}
		r.Slot.Records = append(r.Slot.Records, record)
	}
	lrp.SortRecords(r.Slot.Records)
	return r, true
}

// begin notes that a slot and its deployment are about to be read.
func (m *memory) begin(key slotKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range [...]slotKey{key, {key.guid, deploymentIndex}} {
		r := m.reading[k]
		if r == nil {
			r = new(reading)
			m.reading[k] = r
		}
		r.by++
	}
}

// end remembers what was read, unless a commit came in between.
func (m *memory) end(key slotKey, records []lrp.ActualLRP, bare *lrp.Deployment, err error) {
	var slot, deployment *remembered
	if err == nil {
		slot, deployment = &remembered{}, &remembered{deployment: bare}
		for i := range records {
			r := &records[i]
			slot.records = append(slot.records, rememberedRecord{r.DefinitionID, r.Presence, storage.AppendActualLRP(nil, r)})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learn(key, slot)
	m.learn(slotKey{key.guid, deploymentIndex}, deployment)
}

// learn ends the reading of a key. x is what was found, or nil.
func (m *memory) learn(k slotKey, x *remembered) {
	r := m.reading[k]
	if r.by--; r.by == 0 {
		delete(m.reading, k)
	}
	if x != nil && m.at >= 0 && !r.touched && m.known[k] == nil {
		m.put(k, x)
	}
}

// put makes room by forgetting whatever comes first.
func (m *memory) put(k slotKey, x *remembered) {
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
func (m *memory) touch(k slotKey) *remembered {
	if r := m.reading[k]; r != nil {
		r.touched = true
	}
	return m.known[k]
}

// forget drops everything, as nobody knows what was committed.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.at = -1
}

func (m *memory) clear() {
	clear(m.known)
	for _, r := range m.reading {
		r.touched = true
	}
}

// logEnd is where the log must end for the memory to be right.
func (m *memory) logEnd() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// holds reports whether what the batch was decided from is what this process's
// last commit left.
func (m *memory) holds(o *origin) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isNow(o)
}

// isNow compares deployments by their tags, as one of many instances may have
// been forgotten and read again for another instance.
func (m *memory) isNow(o *origin) bool {
	d := m.known[slotKey{o.key.guid, deploymentIndex}]
	return o.slot != nil && m.known[o.key] == o.slot && d != nil && d.tag() == o.deployment.tag()
}

// A write is what a commit has done to one record.
type write struct {
	key storage.RecordKey
	// record is the ActualLRP as storage.AppendActualLRP encodes it, nil if it is
	// gone; deployment the bare deployment.
	record     []byte
	deployment *lrp.Deployment
	// moved: the record has gone into quarantine.
	moved bool
}

// note learns what a transaction of this process has written. The log ends with
// its events.
func (m *memory) note(newest, events int64, writes []write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if newest-events != m.at {
		if m.at >= 0 {
			m.until = time.Now().Add(m.pause)
		}
		m.clear()
	}
	m.at = newest
	for i := range writes {
		m.noteWrite(&writes[i])
	}
}

func (m *memory) noteWrite(c *write) {
	switch {
	case c.moved:
		m.drop(slotKey{c.key.GUID, c.key.Index})
		m.drop(slotKey{c.key.GUID, deploymentIndex})
	case c.key.Kind == storage.DeploymentRecord:
		k := slotKey{c.key.GUID, deploymentIndex}
		m.touch(k)
		m.put(k, &remembered{deployment: c.deployment})
	case c.key.Kind == storage.ActualLRPRecord:
		k := slotKey{c.key.GUID, c.key.Index}
		before := m.touch(k)
		if before == nil {
			return // one record is not the whole slot
		}
		after := &remembered{}
		for _, r := range before.records {
			if r.definitionID != c.key.DefinitionID || r.presence != lrp.Presence(c.key.Presence) {
				after.records = append(after.records, r)
			}
		}
		if c.record != nil {
			after.records = append(after.records, rememberedRecord{c.key.DefinitionID, lrp.Presence(c.key.Presence), c.record})
		}
		m.put(k, after)
	}
}

func (m *memory) drop(k slotKey) {
	m.touch(k)
	delete(m.known, k)
}

// doubt drops what the origin of a refused batch rests on, if it is still what
// is remembered: then somebody has written it behind the store's back.
func (m *memory) doubt(o *origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isNow(o) {
		m.drop(o.key)
		m.drop(slotKey{o.key.guid, deploymentIndex})
	}
}

// sizes are how many slots and deployments are remembered, and how many are being
// read.
func (m *memory) sizes() (remembered, reading int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.known), len(m.reading)
}
