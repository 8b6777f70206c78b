// The four tools of the public comparison on mcp-go, over HTTP: public-go PORT
// Its fifth tool, read_text_file, is the same as that of the official SDK's program, over stdio: public-go
package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func upper(value any) any {
	switch one := value.(type) {
	case string:
		return strings.ToUpper(one)
	case []any:
		for index := range one {
			one[index] = upper(one[index])
		}
	case map[string]any:
		for key := range one {
			one[key] = upper(one[key])
		}
	}
	return value
}

func text(value any) (*mcp.CallToolResult, error) {
	encoded, err := json.Marshal(value)
	return mcp.NewToolResultText(string(encoded)), err
}

func serve(app *server.MCPServer) error {
	if len(os.Args) < 2 {
		return server.ServeStdio(app)
	}
	return server.NewStreamableHTTPServer(app, server.WithStateLess(true)).Start("127.0.0.1:" + os.Args[1])
}

func main() {
	app := server.NewMCPServer("public", "1.0")
	app.AddTool(mcp.NewTool("compute", mcp.WithNumber("n", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(map[string]any{"result": fibonacci(call.GetInt("n", 0))})
		})
	app.AddTool(mcp.NewTool("fetch", mcp.WithString("url", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := http.Get(call.GetString("url", ""))
			if err != nil {
				return nil, err
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return nil, err
			}
			return text(map[string]any{"status": answer.StatusCode, "body": string(body)})
		})
	app.AddTool(mcp.NewTool("transform", mcp.WithObject("data", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(upper(call.GetArguments()["data"]))
		})
	app.AddTool(mcp.NewTool("wait", mcp.WithNumber("ms", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ms := call.GetInt("ms", 0)
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return text(map[string]any{"waited": ms})
		})
	app.AddTool(mcp.NewTool("read_text_file", mcp.WithString("path", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			content, err := os.ReadFile(call.GetString("path", ""))
			return mcp.NewToolResultText(string(content)), err
		})
	if err := serve(app); err != nil {
		panic(err)
	}
}
