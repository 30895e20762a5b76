package enginecore

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	newestMinor = 33
	oldestMinor = 25
)

// Version is one vLLM release line as this package speaks it, and the release that is advertised. It is comparable; the zero
// value is the default, 0.33.0.
type Version struct {
	behind uint8  // lines before the newest
	patch  uint16 // advertised only: all releases of a line share its layout
	tagged bool   // written with a leading v
}

// ParseVersion reads "0.25" to "0.33", with or without a leading v and a patch number ("v0.27.1").
func ParseVersion(s string) (Version, error) {
	bare, tagged := strings.CutPrefix(s, "v")
	parts := strings.Split(bare, ".")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "0" {
		return Version{}, unknownVersion(s)
	}
	minor, err := parseNumber(parts[1])
	if err != nil || minor < oldestMinor || minor > newestMinor {
		return Version{}, unknownVersion(s)
	}
	v := Version{behind: uint8(newestMinor - minor), tagged: tagged}
	if len(parts) == 3 {
		if v.patch, err = parseNumber(parts[2]); err != nil {
			return Version{}, unknownVersion(s)
		}
	}
	return v, nil
}

// parseNumber reads plain decimal digits: no sign, no needless zero.
func parseNumber(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return uint16(n), err
}

func unknownVersion(s string) error {
	known := make([]string, 0, newestMinor-oldestMinor+1)
	for minor := oldestMinor; minor <= newestMinor; minor++ {
		known = append(known, "0."+strconv.Itoa(minor))
	}
	return fmt.Errorf("vLLM version %q: unknown, want one of %s, with or without a leading v and a patch number", s, strings.Join(known, ", "))
}

// String is the release as advertised to a frontend: as it was given, with patch 0 where none was.
func (v Version) String() string {
	tag := ""
	if v.tagged {
		tag = "v"
	}
	return fmt.Sprintf("%s0.%d.%d", tag, v.minor(), v.patch)
}

// AtLeast tells whether the line is 0.minor or a later one.
func (v Version) AtLeast(minor int) bool { return v.minor() >= minor }

// DataParallelSize is what an engine of a fleet of size engines reports in its [ReadyResponse]. Up to 0.32 that is the fleet; from
// 0.33 on it is the number of ranks that step together, which is 1 unless they are coordinated (a mixture-of-experts model).
func (v Version) DataParallelSize(size uint32, coordinated bool) uint32 {
	if v.AtLeast(33) && !coordinated {
		return 1
	}
	return size
}

func (v Version) minor() int { return newestMinor - int(v.behind) }

// requestLen is the number of elements of an ADD.
func (v Version) requestLen() int {
	if v.AtLeast(33) {
		return 22
	}
	return 20
}

// outputSlots is the number of slots of an EngineCoreOutput, numbered as from 0.26 on; 0.25 lacks slot 9.
func (v Version) outputSlots() int {
	if v.AtLeast(33) {
		return 19
	}
	return 14
}

// outputIndex is the position of a slot in the array of this line.
func (v Version) outputIndex(slot int) int {
	if !v.AtLeast(26) && slot > slotECTransfer {
		return slot - 1
	}
	return slot
}

// outputSlot is the slot at a position of the array of this line.
func (v Version) outputSlot(index int) int {
	if !v.AtLeast(26) && index >= slotECTransfer {
		return index + 1
	}
	return index
}
