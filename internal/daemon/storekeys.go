package daemon

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/diegosdk/diego/storage/sqlstore"
)

// StoreKeys are the settings of encryption at rest, for embedding beside
// [Store] in programs that read and write records.
type StoreKeys struct {
	StoreKeyFiles map[string]string `name:"store_keys" option:"sqlstore.Options.Keys,by hand" help:"keys of the records by their labels, each the path of a file with 32 bytes in base64 (head -c 32 /dev/urandom | base64), readable by nobody else; without any, records are not encrypted"`
	StoreKey      string            `name:"store_key" help:"label of the key of store_keys that encrypts, the others only decrypt; - for none"`
	StoreRotate   bool              `name:"store_rotate" help:"encrypt all records again, with store_key, while other work goes on; the log says when that is done"`
}

// noKey is the value of store_key with which nothing more is encrypted.
const noKey = "-"

// keyBytes is the length of a key: AES-256.
const keyBytes = 32

// CheckStoreKeys is for the Check method of settings that embed StoreKeys.
func (s *StoreKeys) CheckStoreKeys(report func(name, want string)) {
	labels := slices.Sorted(maps.Keys(s.StoreKeyFiles))
	_, known := s.StoreKeyFiles[s.StoreKey]
	switch {
	case len(labels) == 0 && s.StoreKey != "":
		report("store_key", "want store_keys, too, with the file of this key")
	case len(labels) == 0 && s.StoreRotate:
		report("store_rotate", "want store_keys and store_key, too")
	case len(labels) > 0 && !known && s.StoreKey != noKey:
		report("store_key", fmt.Sprintf("want the label of the key that encrypts, one of %s; or %s for none", strings.Join(labels, ", "), noKey))
	}
}

// Keys reads the key files. It returns nil if there are none. The error names
// the file that is wrong and says what to do about it; it never shows the
// content.
func (s *StoreKeys) Keys() (*sqlstore.Keys, error) {
	if len(s.StoreKeyFiles) == 0 {
		return nil, nil
	}
	keys := &sqlstore.Keys{Secrets: map[string][]byte{}}
	if s.StoreKey != noKey {
		keys.Active = s.StoreKey
	}
	for _, label := range slices.Sorted(maps.Keys(s.StoreKeyFiles)) {
		secret, err := readKey(s.StoreKeyFiles[label])
		if err != nil {
			return nil, fmt.Errorf("store_keys: the key %q: %w", label, err)
		}
		keys.Secrets[label] = secret
	}
	return keys, nil
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Mode()&others != 0 {
		return nil, fmt.Errorf("other users of this host can read or write %s (%v): run chmod 600 on it, and take another key if one of them may have read this one", path, info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != keyBytes {
		return nil, fmt.Errorf("%s does not hold %d bytes in base64; head -c %d /dev/urandom | base64 makes such a key", path, keyBytes, keyBytes)
	}
	return secret, nil
}

// CheckSealed fails if records of the store are encrypted and there are no
// keys, so that a daemon does not start only to refuse each of them.
func (s *StoreKeys) CheckSealed(ctx context.Context, store *sqlstore.Store) error {
	if len(s.StoreKeyFiles) > 0 {
		return nil
	}
	labels, err := store.SealedWith(ctx)
	if err != nil || len(labels) == 0 {
		return err
	}
	return fmt.Errorf("store_keys: missing: records of this database are encrypted with the keys %q; set store_keys and store_key (--store-keys, --store-key) as the other processes of this database have them", labels)
}

// Rotate does what store_rotate asks for, until ctx ends. It logs its result
// and returns none: the daemon continues in any case, and the next start tries
// again.
func (s *StoreKeys) Rotate(ctx context.Context, store *sqlstore.Store, log *slog.Logger) {
	if !s.StoreRotate {
		return
	}
	log.Info("store_rotate: encrypting all records anew", "store_key", s.StoreKey)
	done, err := store.Rotate(ctx)
	switch {
	case ctx.Err() != nil:
		log.Info("store_rotate was interrupted; the next start goes on with it", "rows", done.Rows)
	case err != nil:
		log.Warn("store_rotate has not done all; keep all keys in store_keys and start again with store_rotate", "rows", done.Rows, "skipped", done.Skipped, "err", err)
	default:
		log.Info("store_rotate is done; if every process has this store_key, no record needs another key", "store_key", s.StoreKey, "rows", done.Rows)
	}
}
