package executor

import "time"

// A ModificationTag orders the versions of one record. Every change of the
// record raises Index by one, presence changes included; a record that is made
// anew at the same key has another Epoch.
//
// A write names the tag that was read, and a store refuses it if the record has
// another tag by then. The zero tag stands for a record that does not exist.
type ModificationTag struct {
	// Epoch is the record's creation in Unix nanoseconds, moved forward where
	// that is needed to be unique among the records that are or were at its key.
	Epoch int64 `json:"epoch,string"`
	// Index counts the changes since then.
	Index int64 `json:"index"`
}

// SucceededBy reports whether other is newer than t: any other epoch is newer,
// and within one epoch the larger index is.
func (t ModificationTag) SucceededBy(other ModificationTag) bool {
	return t.Epoch != other.Epoch || t.Index < other.Index
}

// Created returns when the record was made.
func (t ModificationTag) Created() time.Time { return time.Unix(0, t.Epoch).UTC() }

// IsZero reports whether t stands for a record that does not exist.
func (t ModificationTag) IsZero() bool { return t == ModificationTag{} }

// Next returns the tag of the record's next version.
func (t ModificationTag) Next() ModificationTag {
	return ModificationTag{Epoch: t.Epoch, Index: t.Index + 1}
}
