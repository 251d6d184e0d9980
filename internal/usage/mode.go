package usage

import (
	"strings"

	"sessiond/internal/session"
)

// ModeFast is the mode of a price for requests that a provider answers faster: Anthropic's fast mode,
// OpenAI's priority processing.
const ModeFast = "fast"

// WebSearch is the model of a call that stands for searches of a provider's server.
const WebSearch = "web_search"

// searchNanoUSD is the price of one search: 10 dollars per thousand at Anthropic and OpenAI.
const searchNanoUSD = 10_000_000

func priceSearches(call *session.Call) {
	cost := call.Requests * searchNanoUSD
	call.CostNanoUSD, call.PriceSource = &cost, FromCatalogue
}

// priceMode returns the mode of a call's price by the tier of service that its provider reported, and the share of
// that price in percent; 0 for a tier whose price is unknown. Flex and batch requests cost half at the makers that
// offer them. Anthropic's priority tier is capacity that was bought before, at the price of the standard tier.
func priceMode(maker, tier string) (mode string, share int64) {
	switch strings.ToLower(tier) {
	case "", "standard", "default", "auto", "on_demand", "scale":
		return "", 100
	case ModeFast:
		return ModeFast, 100
	case "priority":
		if maker == "anthropic" {
			return "", 100
		}
		return ModeFast, 100
	case "flex", "batch":
		switch maker {
		case "anthropic", "openai", "google":
			return "", 50
		}
	}
	return "", 0
}

// ServiceTier returns the tier of service to store for the words that a provider uses; "" for the standard one.
func ServiceTier(tier string) string {
	tier = strings.ToLower(strings.TrimSpace(tier))
	if strings.Trim(tier, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || len(tier) > 40 {
		return "unknown"
	}
	if mode, share := priceMode("", tier); mode == "" && share == 100 {
		return ""
	}
	return tier
}

// IsLocal reports whether a provider is a server on the user's own hardware: nobody charges for its replies.
func IsLocal(provider string) bool {
	provider = strings.ToLower(provider)
	for _, local := range []string{
		"ollama", "lmstudio", "lm-studio", "llama", "vllm", "mlx", "localai", "local",
		"sglang",
	} {
		if rest, ok := strings.CutPrefix(provider, local); ok && !strings.HasPrefix(rest, "-cloud") && rest != "-api" {
			return true
		}
	}
	return false
}
