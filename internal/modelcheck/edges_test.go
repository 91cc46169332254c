package modelcheck

import "testing"

func TestE(t *testing.T) {
	for _, x := range Edges() {
		t.Log(x)
	}
}
