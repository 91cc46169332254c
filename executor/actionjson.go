package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// UnmarshalJSON accepts an object with at most one member, which names a kind
// exactly. Everything else (an unknown kind, several kinds or one kind twice,
// a member of the wrong type, actions nested too deep, far too many actions) is a *ValidationError
// with the path from a to the member. Like every JSON decoder of this module
// it ignores unknown members inside of an action, so that an older reader
// understands a newer writer.
//
// If it fails, a is unchanged.
func (a *Action) UnmarshalJSON(data []byte) error {
	// Only a direct caller can bring invalid JSON.
	var object json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	var v Validator
	decoded := decodeAction(object, &v, 1, new(int))
	if err := v.Err(); err != nil {
		return err
	}
	*a = decoded
	return nil
}

// maxDecoded is the most actions in lists of one tree that are decoded, because each costs
// far more than its text. [Action.Validate] already refuses a tenth of that. Before they
// are counted, the elements of a list are decoded only as raw JSON.
const maxDecoded = 10 * MaxActionNodes

// decodeAction decodes an action at the given depth from valid JSON. What is
// wrong goes to v. listed is how many actions the lists of the tree have so far.
func decodeAction(data json.RawMessage, v *Validator, depth int, listed *int) Action {
	var a Action
	if len(data) == 0 || string(data) == "null" {
		return a // an action without a kind: Validate refuses it where one is required
	}
	if depth > MaxActionDepth {
		v.Check(false, "", depth, fmt.Sprintf("actions nested at most %d deep", MaxActionDepth))
		return a
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		v.Check(false, "", string(data), "an object")
		return a
	}
	// The members are read one by one, as decoding into a map or a struct
	// would hide a kind given twice and accept one in other letters.
	for first := true; d.More(); first = false {
		name, nameErr := d.Token()
		var value json.RawMessage
		valueErr := d.Decode(&value) // which fails on invalid JSON only, as Token does
		if err := errors.Join(nameErr, valueErr); err != nil {
			v.Check(false, "", err, "valid JSON")
			return a
		}
		kind, _ := name.(string)
		if !first {
			v.Check(false, kind, "", oneKind)
			return a
		}
		a.decodeKind(Kind(kind), value, v, depth, listed)
	}
	return a
}

// decodeKind decodes the one member of an action. The structs embed an action
// and shadow the field that holds other actions, so that those are decoded
// here, with their path and depth, and not by encoding/json.
func (a *Action) decodeKind(kind Kind, data json.RawMessage, v *Validator, depth int, listed *int) {
	v, depth = v.In(string(kind)), depth+1
	switch kind {
	case KindRun:
		a.Run = new(RunAction)
		decodeFields(data, a.Run, v)
	case KindDownload:
		a.Download = new(DownloadAction)
		decodeFields(data, a.Download, v)
	case KindUpload:
		a.Upload = new(UploadAction)
		decodeFields(data, a.Upload, v)
	case KindTimeout:
		a.Timeout = new(TimeoutAction)
		fields := struct {
			*TimeoutAction
			Action json.RawMessage `json:"action"`
		}{TimeoutAction: a.Timeout}
		decodeFields(data, &fields, v)
		a.Timeout.Action = decodeAction(fields.Action, v.In("action"), depth, listed)
	case KindTry:
		a.Try = new(TryAction)
		fields := struct {
			*TryAction
			Action json.RawMessage `json:"action"`
		}{TryAction: a.Try}
		decodeFields(data, &fields, v)
		a.Try.Action = decodeAction(fields.Action, v.In("action"), depth, listed)
	case KindEmitProgress:
		a.EmitProgress = new(EmitProgressAction)
		fields := struct {
			*EmitProgressAction
			Action json.RawMessage `json:"action"`
		}{EmitProgressAction: a.EmitProgress}
		decodeFields(data, &fields, v)
		a.EmitProgress.Action = decodeAction(fields.Action, v.In("action"), depth, listed)
	case KindParallel:
		a.Parallel = new(ParallelAction)
		fields := struct {
			*ParallelAction
			Actions []json.RawMessage `json:"actions"`
		}{ParallelAction: a.Parallel}
		decodeFields(data, &fields, v)
		a.Parallel.Actions = decodeActions(fields.Actions, v, depth, listed)
	case KindSerial:
		a.Serial = new(SerialAction)
		fields := struct {
			*SerialAction
			Actions []json.RawMessage `json:"actions"`
		}{SerialAction: a.Serial}
		decodeFields(data, &fields, v)
		a.Serial.Actions = decodeActions(fields.Actions, v, depth, listed)
	case KindCodependent:
		a.Codependent = new(CodependentAction)
		fields := struct {
			*CodependentAction
			Actions []json.RawMessage `json:"actions"`
		}{CodependentAction: a.Codependent}
		decodeFields(data, &fields, v)
		a.Codependent.Actions = decodeActions(fields.Actions, v, depth, listed)
	default:
		v.Check(false, "", "", oneKind)
	}
}

func decodeActions(data []json.RawMessage, v *Validator, depth int, listed *int) []Action {
	if *listed += len(data); *listed > maxDecoded {
		v.Check(false, "actions", *listed, fmt.Sprintf("at most %d actions in one tree", MaxActionNodes))
		return nil
	}
	actions := make([]Action, len(data))
	for i := range data {
		actions[i] = decodeAction(data[i], v.At("actions", i), depth, listed)
	}
	return actions
}

// decodeFields decodes an object into the struct that fields points to.
func decodeFields(data json.RawMessage, fields any, v *Validator) {
	if data[0] != '{' {
		v.Check(false, "", string(data), "an object")
		return
	}
	err := json.Unmarshal(data, fields)
	if err == nil {
		return
	}
	field, value, limit := "", err.Error(), "valid JSON"
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		field, value, limit = mismatch.Field, mismatch.Value, jsonLimit(mismatch.Type)
		// encoding/json also names the embedded struct.
		if _, after, ok := strings.Cut(field, "Action."); ok {
			field = after
		}
	}
	v.Check(false, field, value, limit)
}

// jsonLimit is what a member of JSON has to be to fit a Go type.
func jsonLimit(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	}
	return "a whole number (" + t.String() + ")"
}
