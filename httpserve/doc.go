// Package httpserve is what our two HTTP servers, the control API and the OpenAI front end, need beside fasthttp to outlive bad
// clients and shortages, to keep strangers out, and to stop. It must never know about routes, engines or the answers to
// requests.
package httpserve
