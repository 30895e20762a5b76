package tokenizer

import (
	"errors"
	"fmt"
)

// MaxStopBytes is how long the stop strings of a request may be together. Each byte takes up to 28 bytes of memory while the request
// runs.
const MaxStopBytes = 1 << 20

// Stops finds the first of many strings in text that comes byte by byte, in time linear in the text: an Aho-Corasick automaton.
// It is immutable; any number of detokenizers may share one. Make it with [NewStops].
type Stops struct {
	list  []string
	root  [256]int32 // the root's children, where almost every byte of a text looks
	nodes []stopNode // the root is node 0
}

// stopNode stands for a beginning of a stop string.
type stopNode struct {
	child   int32 // its first child, 0 = none
	sibling int32 // the next child of its parent, 0 = none
	fail    int32 // the node of its longest proper suffix
	depth   int32 // its length in bytes
	hold    int32 // length of its longest suffix that may yet become a stop string
	stop    int32 // the first stop string of the list that is a suffix of it, or noStop
	label   byte  // its last byte
}

const noStop = -1

// NewStops returns an automaton for list, which it keeps, or nil where list is empty. An empty string, and more than [MaxStopBytes] in
// all, are errors.
func NewStops(list []string) (*Stops, error) {
	if len(list) == 0 {
		return nil, nil
	}
	total := 0
	for _, stop := range list {
		if stop == "" {
			return nil, errors.New("stop: an empty string, want at least one character")
		}
		total += len(stop)
	}
	if total > MaxStopBytes {
		return nil, fmt.Errorf("stop: strings of %d bytes in all, want at most %d", total, MaxStopBytes)
	}
	s := &Stops{list: list, nodes: []stopNode{{stop: noStop}}}
	for i, stop := range list {
		s.insert(int32(i), stop)
	}
	s.link()
	return s, nil
}

// insert adds the nodes of stop, number i of the list.
func (s *Stops) insert(i int32, stop string) {
	at := int32(0)
	for depth := range len(stop) {
		next := s.childOf(at, stop[depth])
		if next == 0 {
			next = int32(len(s.nodes))
			s.nodes = append(s.nodes, stopNode{label: stop[depth], depth: int32(depth) + 1, sibling: s.nodes[at].child, stop: noStop})
			s.nodes[at].child = next
			if at == 0 {
				s.root[stop[depth]] = next
			}
		}
		at = next
	}
	if s.nodes[at].stop == noStop {
		s.nodes[at].stop = i
	}
}

// link sets fail, hold and what a node's suffixes say about stop, from short nodes to long ones.
func (s *Stops) link() {
	level := make([]int32, 0, len(s.nodes))
	for c := s.nodes[0].child; c != 0; c = s.nodes[c].sibling {
		level = append(level, c)
	}
	for i := 0; i < len(level); i++ {
		node := &s.nodes[level[i]]
		fail := &s.nodes[node.fail]
		node.hold = fail.hold
		if node.child != 0 {
			node.hold = node.depth
		}
		if fail.stop != noStop && (node.stop == noStop || fail.stop < node.stop) {
			node.stop = fail.stop
		}
		for c := node.child; c != 0; c = s.nodes[c].sibling {
			s.nodes[c].fail = s.next(node.fail, s.nodes[c].label)
			level = append(level, c)
		}
	}
}

// next returns the node of the longest suffix of node and b that begins a stop string.
func (s *Stops) next(node int32, b byte) int32 {
	for {
		if c := s.childOf(node, b); c != 0 || node == 0 {
			return c
		}
		node = s.nodes[node].fail
	}
}

func (s *Stops) childOf(node int32, b byte) int32 {
	if node == 0 {
		return s.root[b]
	}
	c := s.nodes[node].child
	for c != 0 && s.nodes[c].label != b {
		c = s.nodes[c].sibling
	}
	return c
}
