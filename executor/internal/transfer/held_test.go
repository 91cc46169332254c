package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/transfer"
)

func TestArchivesInUseTakeNoMoreDiskThanThereIsForThem(t *testing.T) {
	const most, cached, hostile = 1 << 20, 1 << 20, 20
	body := bytes.Repeat([]byte("x"), most)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) }))
	defer s.Close()
	f, dir := newFetcher(t, func(o *transfer.Options) {
		o.MaxBytes, o.Content.MaxContentBytes, o.CacheBytes, o.Downloads = most, most, cached, hostile
	})
	var held []*transfer.Lease
	for i := range hostile { // all of them are being unpacked, at once
		l, err := f.Archive(t.Context(), transfer.Request{URL: s.URL, CacheKey: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		held = append(held, l)
		for _, l := range held {
			if l.Context.Err() != nil { // as the manager does
				l.Release()
			}
		}
	}
	if disk := diskOf(t, dir); disk > cached+2*most {
		t.Errorf("archives take %d bytes of disk, CacheBytes and what may be in progress are %d", disk, cached+2*most)
	}
}

func diskOf(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		bytes += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestArchivesThatAreUnpackedForLongKeepNoOtherOut(t *testing.T) {
	const most = 1 << 20
	body := bytes.Repeat([]byte("x"), most)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) }))
	defer s.Close()
	f, dir := newFetcher(t, func(o *transfer.Options) { o.MaxBytes, o.Content.MaxContentBytes = most, most })
	var hostile []*transfer.Lease
	for range 2 { // all that transfers in progress may take
		l, err := f.Archive(t.Context(), transfer.Request{URL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		hostile = append(hostile, l)
	}
	l, err := f.Archive(t.Context(), transfer.Request{URL: newServer(t).URL})
	if err != nil {
		t.Fatalf("another tenant's archive: %v", err)
	}
	defer l.Release()
	if err := l.Context.Err(); err != nil {
		t.Errorf("the other's archive gives way: %v", err)
	}
	if err := hostile[0].Outcome(hostile[0].Context.Err()); !errors.Is(err, transfer.ErrBusy) {
		t.Errorf("what gives way ends with %v", err)
	}
	hostile[0].Release()
	if disk := diskOf(t, dir); disk > 2*most {
		t.Errorf("%d bytes of disk", disk)
	}
}

func TestArchivesThatAreUnpackedForTheCacheGiveWay(t *testing.T) {
	const most, hostile = 1 << 20, 10
	body := bytes.Repeat([]byte("x"), most)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) }))
	defer s.Close()
	f, dir := newFetcher(t, func(o *transfer.Options) {
		o.MaxBytes, o.Content.MaxContentBytes, o.Downloads = most, most, hostile
	})
	ctx, end := context.WithCancel(t.Context())
	outcomes := make(chan error)
	for i := range hostile {
		unpacking := make(chan bool, 1)
		go func() {
			_, err := f.Unpacked(ctx, transfer.Request{URL: s.URL, CacheKey: fmt.Sprint(i)}, "slow", most,
				func(ctx context.Context, _ *os.File, _ string, _ archive.Limits) (int64, error) {
					unpacking <- true
					<-ctx.Done()
					return 0, ctx.Err()
				})
			outcomes <- err
		}()
		<-unpacking
		if i >= 2 { // more than all that transfers in progress may take
			if err := <-outcomes; !errors.Is(err, transfer.ErrBusy) {
				t.Fatalf("what gives way ends with %v", err)
			}
		}
	}
	if disk := diskOf(t, dir); disk > 2*most {
		t.Errorf("archives take %d bytes of disk, and may take %d", disk, 2*most)
	}
	end()
	for range 2 {
		if err := <-outcomes; !errors.Is(err, context.Canceled) {
			t.Errorf("what need not give way ends with %v", err)
		}
	}
}
