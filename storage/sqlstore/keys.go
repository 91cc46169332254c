package sqlstore

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// Keys encrypt the columns that hold what runs, routes and addresses:
// definitions, settings, tasks, ActualLRPs and events, with AES-GCM. Each value
// carries the label of its key. Values that are not encrypted stay readable, so
// keys can be added to a store that has data; [Store.Rotate] then encrypts that
// data.
type Keys struct {
	// Active is the label of the key that encrypts; the others only decrypt.
	// If it is empty, nothing new is encrypted.
	Active string
	// Secrets are the keys by their labels: 16, 24 or 32 bytes each. A label
	// is 1 to 64 bytes and never names another key later.
	Secrets map[string][]byte
}

// Every [KeyError] wraps ErrKey.
var ErrKey = errors.New("no such encryption key")

// A KeyError says that data cannot be decrypted because a key is missing. It is
// not ErrCorrupt: the data is fine, and nothing may move it away.
type KeyError struct {
	Label string
	// Why says what is wrong with the key of that label, if the store was
	// given one.
	Why string
}

func (e *KeyError) Error() string {
	why := e.Why
	why = cmp.Or(why, "add it to Keys.Secrets")
	return fmt.Sprintf("sqlstore: %v: %q; %s", ErrKey, e.Label, why)
}

// Unwrap makes errors.Is(err, ErrKey) true.
func (e *KeyError) Unwrap() error { return ErrKey }

// sealedVersion is the first byte of encrypted data, as storage's codec begins
// with a version byte. Then follow the label's length, the label, the nonce and
// the ciphertext.
const sealedVersion = 0xE5

const maxLabel = 64

// A sealer encrypts and decrypts. The zero value does neither.
type sealer struct {
	active  string
	ciphers map[string]cipher.AEAD
}

// newSealer checks the keys. Each label must still have the same key, because
// with a wrong key every record would look damaged.
func (s *Store) newSealer(ctx context.Context, keys *Keys) (*sealer, error) {
	out := &sealer{}
	if keys == nil {
		return out, nil
	}
	out.active, out.ciphers = keys.Active, make(map[string]cipher.AEAD)
	for _, label := range slices.Sorted(maps.Keys(keys.Secrets)) {
		if len(label) == 0 || len(label) > maxLabel {
			return nil, &KeyError{label, "a label is 1 to 64 bytes"}
		}
		block, err := aes.NewCipher(keys.Secrets[label])
		if err != nil {
			return nil, &KeyError{label, "a key is 16, 24 or 32 bytes"}
		}
		if out.ciphers[label], err = cipher.NewGCM(block); err != nil {
			return nil, &KeyError{label, err.Error()}
		}
	}
	if out.active != "" && out.ciphers[out.active] == nil {
		return nil, &KeyError{out.active, "Keys.Active is not among Keys.Secrets"}
	}
	return out, s.prove(ctx, out)
}

// prove checks the keys against the proofs in the store, and stores a proof of
// each new key.
func (s *Store) prove(ctx context.Context, keys *sealer) error {
	for _, label := range slices.Sorted(maps.Keys(keys.ciphers)) {
		prover := sealer{active: label, ciphers: keys.ciphers}
		proof, err := s.proof(ctx, label)
		if err == nil && proof == nil {
			insert := s.d.Rebind("INSERT INTO " + s.table("sealing_keys") + " (label, proof) VALUES (?, ?)")
			_, insertErr := s.write.ExecContext(ctx, insert, label, prover.seal([]byte(label), []byte("key")))
			// If another process was faster, its proof counts.
			if proof, err = s.proof(ctx, label); err == nil && proof == nil {
				err = insertErr
			}
		}
		if err != nil {
			return err
		}
		if _, err := prover.open(proof, []byte("key")); err != nil {
			return &KeyError{label, "this label had another key when the store was last opened with it"}
		}
	}
	return nil
}

func (s *Store) proof(ctx context.Context, label string) (proof []byte, err error) {
	rows, err := s.write.QueryContext(ctx, s.d.Rebind("SELECT proof FROM "+s.table("sealing_keys")+" WHERE label = ?"), label)
	if err != nil {
		return nil, err
	}
	return proof, dialect.ScanAll(rows, func(r *sql.Rows) error { return r.Scan(&proof) })
}

// SealedWith lists, in order, the labels of all keys with which data may be
// encrypted: all with which the store was ever opened. After [Store.Rotate] has
// decrypted everything the list is empty.
func (s *Store) SealedWith(ctx context.Context) (labels []string, err error) {
	rows, err := s.write.QueryContext(ctx, "SELECT label FROM "+s.table("sealing_keys"))
	if err != nil {
		return nil, err
	}
	err = dialect.ScanAll(rows, func(r *sql.Rows) error {
		var label []byte
		err := r.Scan(&label)
		labels = append(labels, string(label))
		return err
	})
	slices.Sort(labels)
	return labels, err
}

// forgetKeys deletes the proofs of all keys.
func (s *Store) forgetKeys(ctx context.Context) error {
	_, err := s.write.ExecContext(ctx, "DELETE FROM "+s.table("sealing_keys"))
	return err
}

// seal encrypts data and binds it to its place: in another record it cannot be
// decrypted.
func (k *sealer) seal(data, where []byte) []byte {
	if k.active == "" {
		return data
	}
	c := k.ciphers[k.active]
	out := make([]byte, 0, 2+len(k.active)+c.NonceSize()+len(data)+c.Overhead())
	out = append(out, sealedVersion, byte(len(k.active)))
	out = append(out, k.active...)
	head := len(out)
	out = out[:head+c.NonceSize()]
	rand.Read(out[head:]) // never fails
	return c.Seal(out, out[head:], data, where)
}

// label is the label of the key that data is encrypted with, or "" if it is
// not.
func sealedLabel(data []byte) (label string, rest []byte) {
	if len(data) < 2 || data[0] != sealedVersion || len(data) < 2+int(data[1]) {
		return "", data
	}
	n := 2 + int(data[1])
	return string(data[2:n]), data[n:]
}

// open decrypts data, unless it is not encrypted. A *KeyError means that the
// key is missing; any other error means that the data is damaged.
func (k *sealer) open(data, where []byte) ([]byte, error) {
	label, rest := sealedLabel(data)
	if label == "" {
		return data, nil
	}
	c := k.ciphers[label]
	if c == nil {
		return nil, &KeyError{Label: label}
	}
	if len(rest) < c.NonceSize() {
		return nil, errors.New("the ciphertext ends too early")
	}
	plain, err := c.Open(nil, rest[:c.NonceSize()], rest[c.NonceSize():], where)
	if err != nil {
		return nil, fmt.Errorf("decrypting with key %q: %w", label, err)
	}
	return plain, nil
}

// place is where encrypted data belongs. Names contain no NUL.
func place(kind byte, names ...string) []byte {
	out := []byte{kind}
	for _, name := range names {
		out = append(append(out, name...), 0)
	}
	return out
}

var eventPlace = place('e')

func lrpPlace(r *lrp.ActualLRP) []byte {
	return lrpPlaceOf(r.ProcessGUID, int64(r.Index), r.DefinitionID, int64(r.Presence))
}

func lrpPlaceOf(guid string, index int64, definitionID string, presence int64) []byte {
	return append(binary.AppendVarint(place('a', guid, definitionID), index), byte(presence))
}

func taskPlace(guid string) []byte           { return place('t', guid) }
func settingsPlace(guid string) []byte       { return place('s', guid) }
func revisionsPlace(guid string) []byte      { return place('h', guid) }
func definitionPlace(guid, id string) []byte { return place('d', guid, id) }
