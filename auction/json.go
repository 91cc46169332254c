package auction

import (
	"encoding/json"
	"errors"

	"github.com/diegosdk/diego/executor"
)

// In JSON, the error of an item or a cell is the list of its fields.

type refusalFields Refusal

type refusalJSON struct {
	*refusalFields
	Invalid *executor.ValidationError `json:"invalid,omitempty"`
}

// MarshalJSON writes the item's error as its fields.
func (r Refusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(refusalJSON{(*refusalFields)(&r), validation(r.Invalid)})
}

// UnmarshalJSON reads what MarshalJSON writes. The refusal gets an item of its
// own.
func (r *Refusal) UnmarshalJSON(data []byte) error {
	var fields refusalFields
	w := refusalJSON{refusalFields: &fields}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*r = Refusal(fields)
	if w.Invalid != nil {
		r.Invalid = w.Invalid
	}
	return nil
}

type invalidCellJSON struct {
	CellID  string                    `json:"cell_id"`
	Invalid *executor.ValidationError `json:"invalid"`
}

// MarshalJSON writes the cell's error as its fields.
func (c InvalidCell) MarshalJSON() ([]byte, error) {
	return json.Marshal(invalidCellJSON{c.CellID, validation(c.Err)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *InvalidCell) UnmarshalJSON(data []byte) error {
	var w invalidCellJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = InvalidCell{CellID: w.CellID}
	if w.Invalid != nil {
		c.Err = w.Invalid
	}
	return nil
}

func validation(err error) *executor.ValidationError {
	var v *executor.ValidationError
	errors.As(err, &v)
	return v
}
