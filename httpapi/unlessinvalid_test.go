package httpapi

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestAListIsAskedForOnceMoreOnlyIfItBeginsWithARefusal(t *testing.T) {
	broken := errors.New("broken")
	list := func(items ...any) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for _, x := range items {
				err, _ := x.(error)
				n, _ := x.(int)
				if !yield(n, err) {
					return
				}
			}
		}
	}
	for name, test := range map[string]struct {
		first, second, want []any
	}{
		"first":                   {[]any{1, 2}, []any{3}, []any{1, 2}},
		"empty":                   {nil, []any{3}, nil},
		"refused":                 {[]any{executor.ErrInvalid}, []any{3, 4}, []any{3, 4}},
		"refused twice":           {[]any{executor.ErrInvalid}, []any{executor.ErrInvalid}, []any{executor.ErrInvalid}},
		"refused after an item":   {[]any{1, executor.ErrInvalid}, []any{3}, []any{1, executor.ErrInvalid}},
		"refused after a failure": {[]any{broken, executor.ErrInvalid}, []any{3}, []any{broken, executor.ErrInvalid}},
		"failed":                  {[]any{broken}, []any{3}, []any{broken}},
	} {
		for most := range 3 { // the reader stops after so many
			var got []any
			for n, err := range unlessInvalid(list(test.first...), list(test.second...)) {
				if err != nil {
					got = append(got, err)
				} else {
					got = append(got, n)
				}
				if len(got) > most {
					break
				}
			}
			if want := test.want[:min(most+1, len(test.want))]; !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	}
}
