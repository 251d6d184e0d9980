package anthropic

import (
	"fmt"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// maxImages is how many images a request may have for each model: 100 with a window of 200,000
// tokens, 600 with a larger one. Source: Anthropic's guide to vision.
const maxImages = 100

// imageStep is how many images are left out at once, so that a conversation of many images keeps
// its beginning, and the provider's cache, for as many new ones.
const imageStep = 20

// imageNote stands in for an image that is left out.
const imageNote = "[image left out: a request may hold 100, and newer ones follow]"

// surplusImages returns how many of n images, the oldest, are left out.
func surplusImages(n int) int {
	if n <= maxImages {
		return 0
	}
	return (n - maxImages + imageStep - 1) / imageStep * imageStep
}

// countImages counts the images of messages.
func countImages(msgs []session.Message) int {
	n := 0
	for i := range msgs {
		for k := range msgs[i].Parts {
			if msgs[i].Parts[k].Kind == session.PartImage {
				n++
			}
		}
	}
	return n
}

// limitImages decides how many images are left out. It notes if that are more than of the context
// before.
func (s *sender) limitImages(in *wire.Request) {
	s.surplus = surplusImages(countImages(in.Messages))
	if s.surplus == 0 {
		return
	}
	if s.before > 0 && surplusImages(countImages(in.Messages[:s.before])) != s.surplus {
		s.brokenBy = "images"
	}
	s.LoseOf(&session.Message{}, fmt.Sprintf("%d images, the oldest: the API takes %d in a request", s.surplus, maxImages))
}

// isSurplus counts an image and reports whether it is left out.
func (s *sender) isSurplus() bool {
	s.images++
	return s.images <= s.surplus
}

var modelVersion = pattern.New(`claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?:[^0-9]|$)`)

// takesSystemTurns reports whether a model takes a system message in the middle: Opus does from 4.8
// on, the others from 5 on. Source: Anthropic's guide to mid-conversation system messages; what
// Claude Code sends. Vertex, which writes versions behind an @, takes none.
func takesSystemTurns(model string) bool {
	model = strings.ToLower(model)
	found := modelVersion.FindStringSubmatch(model)
	if found == nil || strings.Contains(model, "@") {
		return false
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return major >= 5 || major == 4 && minor >= 8 && strings.Contains(model, "opus")
}
