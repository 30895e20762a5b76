package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// requestList is what the tests read of GET /requests.
type requestList struct {
	Requests []struct {
		ID           string   `json:"id"`
		Engine       int      `json:"engine"`
		State        string   `json:"state"`
		Finish       string   `json:"finish_reason"`
		MaxTokens    int      `json:"max_tokens"`
		OutputTokens int      `json:"output_tokens"`
		Arrived      string   `json:"arrived"`
		Queue        *float64 `json:"queue_ms"`
		TTFT         *float64 `json:"ttft_ms"`
		E2E          *float64 `json:"e2e_ms"`
	} `json:"requests"`
	Matched, Dropped int
}

func (p *program) requests(t *testing.T, path string) requestList {
	t.Helper()
	var list requestList
	if err := json.Unmarshal([]byte(p.get(t, path)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRequests_Serve finds what clients asked of our own front end, whichever engine it went to, and nothing of what they said.
func TestRequests_Serve(t *testing.T) {
	p := startServe(t, 2, "--request-journal", "2")
	for tokens := range 6 {
		p.wantAnswer(t, 1+tokens)
	}
	all := p.requests(t, "/requests?limit=10000")
	if kept := len(all.Requests); kept+all.Dropped != 6 || kept != all.Matched || kept < 2 || kept > 4 {
		t.Errorf("%d shown of %d, %d dropped, want two of each engine at most, and 6 in all", kept, all.Matched, all.Dropped)
	}
	for i, r := range all.Requests {
		if r.State != "completed" || r.Finish != "length" || r.MaxTokens != r.OutputTokens || r.Queue == nil || r.TTFT == nil || r.E2E == nil || *r.E2E < *r.TTFT {
			t.Errorf("request %d = %+v, want one that was completed, with its times", i, r)
		}
		if i > 0 && r.Arrived > all.Requests[i-1].Arrived {
			t.Errorf("request %d arrived at %s, after the one before it", i, r.Arrived)
		}
	}
	newest := all.Requests[0]
	if newest.OutputTokens != 6 {
		t.Errorf("the newest has %d tokens, want the last one's 6", newest.OutputTokens)
	}
	same := p.requests(t, "/requests/"+url.PathEscape(newest.ID))
	if len(same.Requests) != 1 || same.Requests[0].ID != newest.ID {
		t.Errorf("asked for by its id: %+v, want that request", same.Requests)
	}
	if of := p.requests(t, fmt.Sprintf("/requests?engine=%d&state=completed&limit=1", newest.Engine)); len(of.Requests) != 1 || of.Requests[0].ID != newest.ID {
		t.Errorf("the newest of engine %d: %+v, want %s", newest.Engine, of.Requests, newest.ID)
	}
	if none := p.requests(t, "/requests?state=waiting,running,failed,aborted"); len(none.Requests) != 0 {
		t.Errorf("%+v, want none that was not completed", none.Requests)
	}
	if text := p.get(t, "/requests"); strings.Contains(text, "Hello") {
		t.Errorf("the prompt is in %s", text)
	}
	if text := p.get(t, "/metrics"); !strings.Contains(text, "vllm_vcr_request_journal_dropped_total{engine=") {
		t.Errorf("no metric of what was dropped in %s", text)
	}
}
