// Package models asks a model for summaries and titles: Gemini, or any server that speaks OpenAI's protocol.
package models
