package control

import (
	"math"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/supervisor"
)

// requestsBody is the requests that were asked for, newest arrival first.
type requestsBody struct {
	Requests []requestBody `json:"requests"`
	Matched  uint64        `json:"matched"` // how many there are
	Cut      bool          `json:"cut"`     // more than are shown
	Dropped  uint64        `json:"dropped"` // finished ones that the engines have forgotten
}

// requestBody is one request. What it has not, or not yet, is null.
type requestBody struct {
	ID           string   `json:"id"`
	ExternalID   *string  `json:"external_id"`
	Engine       int      `json:"engine"`
	Client       uint64   `json:"client"`
	State        string   `json:"state"`
	FinishReason *string  `json:"finish_reason"`
	Cause        *string  `json:"cause"`
	PromptTokens uint64   `json:"prompt_tokens"`
	MaxTokens    uint64   `json:"max_tokens"`
	OutputTokens uint64   `json:"output_tokens"`
	LoRA         *string  `json:"lora"`
	Arrived      *string  `json:"arrived"` // RFC 3339 in UTC, as the other instants
	Admitted     *string  `json:"admitted"`
	FirstToken   *string  `json:"first_token"`
	Finished     *string  `json:"finished"`
	Queue        *float64 `json:"queue_ms"` // from arrival to admission
	TTFT         *float64 `json:"ttft_ms"`  // from arrival to the first token
	E2E          *float64 `json:"e2e_ms"`   // from arrival to the end
}

func (s *Server) getRequests(ctx *fasthttp.RequestCtx) (any, error) {
	wanted, err := decodeQuery(string(ctx.URI().QueryString()), s.fleet.Len())
	if err != nil {
		return nil, err
	}
	return s.askRequests(ctx, wanted)
}

// getRequest answers with every request of one id: engines may have been sent it more than once.
func (s *Server) getRequest(ctx *fasthttp.RequestCtx) (any, error) {
	raw, _ := ctx.UserValue("id").(string)
	id, err := url.PathUnescape(raw)
	if err != nil || id == "" {
		return nil, faultf(fasthttp.StatusBadRequest, "request id %q cannot be read: %v", shorten(raw), err)
	}
	wanted, err := decodeQuery(string(ctx.URI().QueryString()), s.fleet.Len())
	if err != nil {
		return nil, err
	}
	wanted.ID = id
	body, err := s.askRequests(ctx, wanted)
	if err == nil && body.Matched == 0 {
		return nil, faultf(fasthttp.StatusNotFound, "no request %q is there or remembered; %d finished ones were dropped, see --request-journal",
			shorten(id), body.Dropped)
	}
	return body, err
}

func (s *Server) askRequests(ctx *fasthttp.RequestCtx, wanted requestsQuery) (requestsBody, error) {
	call, cancel := s.deadline()
	defer cancel()
	var found supervisor.Requests
	var err error
	if wanted.engine >= 0 {
		found, err = s.fleet.EngineRequests(call, wanted.engine, wanted.RequestQuery)
	} else {
		found, err = s.fleet.Requests(call, wanted.RequestQuery)
	}
	body := requestsBody{
		Requests: make([]requestBody, len(found.List)),
		Matched:  found.Matched, Cut: found.Matched > uint64(len(found.List)), Dropped: found.Dropped,
	}
	for i, r := range found.List {
		body.Requests[i] = requestOf(r)
	}
	return body, err
}

func requestOf(r supervisor.Request) requestBody {
	return requestBody{
		ID: r.ID, ExternalID: given(r.ExternalID), Engine: r.Engine, Client: r.Client,
		State: r.State, FinishReason: given(r.FinishReason), Cause: given(r.Cause),
		PromptTokens: r.PromptTokens, MaxTokens: r.MaxTokens, OutputTokens: r.OutputTokens, LoRA: given(r.LoRA),
		Arrived: instant(r.Arrived), Admitted: instant(r.Admitted), FirstToken: instant(r.FirstToken), Finished: instant(r.Finished),
		Queue: milliseconds(r.Arrived, r.Admitted), TTFT: milliseconds(r.Arrived, r.FirstToken), E2E: milliseconds(r.Arrived, r.Finished),
	}
}

// given is a text, or null where there is none.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// instant words nanoseconds since 1970, as the log does.
func instant(ns int64) *string {
	if ns == 0 {
		return nil
	}
	text := time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	return &text
}

// milliseconds is the time between two instants, to the microsecond, or null where one has not come.
func milliseconds(from, to int64) *float64 {
	if from == 0 || to == 0 {
		return nil
	}
	ms := math.Round(float64(to-from)/1e3) / 1e3
	return &ms
}
