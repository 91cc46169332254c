package simulation

import "testing"

func TestALateCallArrivesSoonOrAfterMinutesAndOnce(t *testing.T) {
	w, err := NewWorld(History{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const calls = 400
	arrived, minutes := 0, 0
	for range calls {
		w.net.delay(call{}, func() {
			if arrived++; w.random.step > int(120/pace.Seconds()) {
				minutes++
			}
		})
	}
	for range latest {
		w.random.next()
		w.net.deliverLate(false)
	}
	if arrived != calls || minutes < calls/20 {
		t.Errorf("%d of %d calls arrive within five minutes, %d of them after two", arrived, calls, minutes)
	}
}
