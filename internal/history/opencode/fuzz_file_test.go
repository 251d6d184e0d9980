package opencode_test

import (
	"testing"
	"time"

	"sessiond/internal/history/opencode"
	"sessiond/internal/testkit/historytest"
)

// What opencode exports, and the flat list of a share.
func FuzzExport(f *testing.F) {
	const (
		info = `{"id":"ses_1","title":"t","directory":"/home/dev","time":{"created":1770109200000,"updated":1770109300000}}`
		asks = `{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1770109200000}},"parts":[{"id":"prt_1","type":"text","text":"look"}]}`
		says = `{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","modelID":"m","providerID":"p","time":{"created":1770109201000,"completed":1770109203000},"cost":0.001,"tokens":{"input":5,"output":3,"cache":{"read":1,"write":0}},"finish":"stop"},"parts":[{"id":"prt_2","type":"tool","tool":"read","callID":"c","state":{"status":"completed","input":{"filePath":"a"},"output":"1","time":{"start":1770109201000,"end":1770109202000,"compacted":1770112800000}}},{"id":"prt_3","type":"text","text":"done"}]}`
		sums = `{"info":{"id":"msg_3","sessionID":"ses_1","role":"user","time":{"created":1770109204000}},"parts":[{"type":"compaction","auto":true}]},{"info":{"id":"msg_4","role":"assistant","parentID":"msg_3","summary":true,"finish":"stop","time":{"created":1770109205000,"completed":1770109206000}},"parts":[{"type":"text","text":"short"}]}`
	)
	f.Add([]byte(`{"info":` + info + `,"messages":[` + asks + "," + says + "," + sums + "]}"))
	f.Add([]byte(`{"messages":[` + says + "," + says + `,7,{"info":{"id":"msg_1"}}],"info":` + info + `}`))
	f.Add([]byte(`[{"type":"session","data":` + info + `},{"type":"message","data":{"id":"msg_1","role":"user","time":{"created":1}}},{"type":"part","data":{"id":"prt_1","messageID":"msg_1","type":"text","text":"\ud800"}},{"type":"x"}]`))
	f.Add([]byte(`{"info":` + info + `,"messages":[` + asks))
	source := opencode.New(historytest.NoEnv, func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) })
	historytest.FuzzFile(f, "session.json", source)
}
