package storage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func TestRecordsAreGroupedByTheirSlots(t *testing.T) {
	broken := errors.New("broken")
	records := func(yield func(lrp.ActualLRP, error) bool) {
		for _, name := range []string{"a/0/v1", "!", "a/0/v2", "a/1/v1", "b/1/v1", "!"} {
			var r lrp.ActualLRP
			var err error
			if name == "!" {
				err = broken
			} else {
				r.ProcessGUID, r.Index, r.DefinitionID = name[:1], int(name[2]-'0'), name[4:]
			}
			if !yield(r, err) {
				return
			}
		}
	}
	var got []string
	for slot, err := range storage.SlotsOf(records) {
		text := fmt.Sprint(err)
		if err == nil {
			text = fmt.Sprintf("%s/%d", slot.ProcessGUID, slot.Index)
			for _, r := range slot.Records {
				text += " " + r.DefinitionID
			}
		}
		got = append(got, text)
	}
	if got, want := strings.Join(got, ", "), "broken, a/0 v1 v2, a/1 v1, broken, b/1 v1"; got != want {
		t.Errorf("the slots are %s, want %s", got, want)
	}
	for most := range 5 { // nothing comes once the reader has stopped
		n := 0
		for range storage.SlotsOf(records) {
			if n++; n > most {
				break
			}
		}
		if n != most+1 {
			t.Errorf("%d came, want %d", n, most+1)
		}
	}
}
