package memstore

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The oracle is a map and a sort.
func TestATreeHoldsWhatAMapHoldsInOrderAndItsSnapshotsStandStill(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			space := []int{10, 300, 20_000}[rng.IntN(3)]
			tr := tree[int, int]{compare: cmp.Compare[int]}
			want := map[int]int{}
			o := new(owner)
			type snapshot struct {
				tree tree[int, int]
				want map[int]int
			}
			var snapshots []snapshot
			check := func(tr *tree[int, int], want map[int]int) {
				t.Helper()
				if tr.length != len(want) {
					t.Fatalf("length %d, want %d", tr.length, len(want))
				}
				var keys []int
				from := rng.IntN(space) - 1
				tr.ascend(from, func(k, v int) bool {
					if v != want[k] {
						t.Fatalf("value of %d is %d, want %d", k, v, want[k])
					}
					keys = append(keys, k)
					return true
				})
				sorted := slices.Sorted(maps.Keys(want))
				at, _ := slices.BinarySearch(sorted, from)
				if !slices.Equal(keys, sorted[at:]) {
					t.Fatalf("from %d: %v\nwant %v", from, keys, sorted[at:])
				}
			}
			for step := range 6000 {
				k := rng.IntN(space)
				if space == 20_000 && rng.IntN(2) == 0 {
					k = step // in order
				}
				switch op := rng.IntN(10); {
				case op < 6 && step < 4000 || op < 2:
					tr.put(o, k, step)
					want[k] = step
				default:
					tr.remove(o, k)
					delete(want, k)
				}
				if _, there := tr.get(k); there != (want[k] != 0) && step > 0 {
					if _, wanted := want[k]; wanted != there {
						t.Fatalf("step %d: get(%d) says %v", step, k, there)
					}
				}
				if rng.IntN(500) == 0 {
					snapshots = append(snapshots, snapshot{tr, maps.Clone(want)})
					o = new(owner)
				}
				if rng.IntN(200) == 0 {
					check(&tr, want)
				}
			}
			check(&tr, want)
			for _, s := range snapshots {
				check(&s.tree, s.want)
			}
			for k := range want {
				tr.remove(o, k)
			}
			if tr.root != nil || tr.length != 0 {
				t.Fatal("an emptied tree is not empty")
			}
		})
	}
}

func TestATreeStopsWhenTold(t *testing.T) {
	tr := tree[int, int]{compare: cmp.Compare[int]}
	for k := range 1000 {
		tr.put(new(owner), k, k)
	}
	seen := 0
	tr.ascend(10, func(k, _ int) bool { seen++; return k < 200 })
	if seen != 191 {
		t.Errorf("saw %d, want 191", seen)
	}
}
