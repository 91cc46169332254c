package sqlstore

import (
	"encoding/binary"
	"errors"
)

// The data of a segment is, for each event, its length as a varint and its
// encoding.

func appendEvent(dst, data []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(data))), data...)
}

var errSegment = errors.New("the segment of the log is damaged")

// cutBytes splits the first event off a segment.
func cutBytes(data []byte) (first, rest []byte, err error) {
	n, width := binary.Uvarint(data)
	if width <= 0 || n > uint64(len(data)-width) {
		return nil, nil, errSegment
	}
	data = data[width:]
	return data[:n], data[n:], nil
}
