"""The servers of the examples in five documents about the protocol, which shared/protocol/wire/dialects/README.md is
about. Each says what its document prints, in that document's words. Each function makes a new one."""

import re
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from shared import (
    Annotations,
    Content,
    Context,
    Data,
    GetPromptResult,
    Implementation,
    PromptMessage,
    ResourceNotFound,
    Server,
    TextContent,
    ToolError,
)

Described = Annotated[str, Field(description="The code to review")]


def document_000() -> Server[None]:
    """One tool, in snake case."""
    app: Server[None] = Server(Implementation(name="filesystem", version="1.0.0"))

    @app.tool(read_only=True)
    async def read_file(path: str) -> str:
        """Reads a file."""
        return f"what stands in {path}"

    @app.resource("notes:///{name}")
    async def note(name: str) -> str:
        """A note."""
        return f"the note {name}"

    return app


class Weather(BaseModel):
    """What more is known of it comes as well."""

    model_config = ConfigDict(extra="allow")

    temperature: float = Field(description="Temperature in celsius")
    conditions: str = Field(description="Weather conditions description")


def document_001() -> Server[None]:
    """A weather service, one entry a page."""
    implementation = Implementation(name="ExampleServer", title="Example Server Display Name", version="1.0.0")
    app: Server[None] = Server(
        implementation, instructions="Optional instructions for the client", capabilities={"logging": {}}
    )
    app.page_size = 1
    _weather_tools(app)
    _source_files(app)

    @app.prompt(title="Code Review Assistant")
    async def code_review(
        code: Described, language: Annotated[str, Field(description="Programming language")] = "python"
    ) -> GetPromptResult:
        """Analyze code for potential issues and improvements"""
        # The print has lost the indents.
        shown = re.sub(r"\n +", "\n", code)
        text = (
            f"Please review this {language.title()} code:\n\n{shown}\n\n"
            "Provide feedback on code quality, style, and\npotential improvements."
        )
        message = PromptMessage(role="user", content=TextContent(text=text))
        return GetPromptResult(description=f"Code review for {language.title()} function", messages=[message])

    return app


def _weather_tools(app: Server[None]) -> None:
    @app.tool(read_only=True, title="Weather Information Provider")
    async def get_weather(
        ctx: Context[None], location: Annotated[str, Field(description="City name or zip code")]
    ) -> Data[Weather]:
        """Get current weather information for a location"""
        await ctx.log("info", f"Successfully retrieved weather data for {location}", logger="weather-service")
        known: dict[str, Any] = {"temperature": 22, "conditions": "Partly cloudy", "humidity": 65}
        text = f"Current weather in {location}:\nTemperature: 22°C\nConditions: Partly cloudy"
        return Data(Weather(**known), text)

    @app.tool(read_only=True)
    async def forecast(ctx: Context[None]) -> str:
        """Comes half the way."""
        await ctx.progress(0.5, total=1.0)
        await anyio.sleep_forever()
        return ""

    @app.tool()
    async def save(ctx: Context[None]) -> str:
        """Saves the source."""
        ctx.changes.resource("file:///project/src/main.rs")
        return "saved"


def _source_files(app: Server[None]) -> None:
    notes = Annotations(audience=["user", "assistant"], priority=0.8, last_modified="2025-01-12T15:00:58Z")

    @app.resource(
        "file:///project/src/main.rs",
        name="main.rs",
        title="Rust Software Application Main File",
        mime_type="text/x-rust",
        annotations=notes,
    )
    async def main() -> str:
        """Primary application entry point"""
        return 'fn main() {\n    println!("Hello world!");\n}'

    @app.resource("custom-scheme://server-id/resource-path{?param}")
    async def own_scheme(param: str) -> str:
        """Of a scheme of the server's own."""
        return f"the resource with {param}"

    @app.resource("file:///project/Cargo.toml")
    async def manifest() -> str:
        """What a second page shows."""
        return ""

    @app.on_subscribe
    async def subscribed(_ctx: object, uri: str) -> str:
        return uri


class Custom(Content):
    """Content of a type that only the document knows."""

    type: Literal["custom-type"] = "custom-type"
    data: dict[str, Any]


class Bmi(BaseModel):
    """In the words of the document."""

    bmi: float
    category: str


def document_002() -> Server[None]:
    """A health service."""
    app: Server[None] = Server(Implementation(name="health", version="1.0.0"))

    @app.tool(read_only=True)
    async def calculate_bmi(
        weight_kg: Annotated[float, Field(description="体重（千克）")],
        height_m: Annotated[float, Field(description="身高（米）")],
    ) -> Bmi:
        """计算BMI值"""
        if height_m <= 0:
            raise ToolError("nobody is that small")
        return Bmi(bmi=round(weight_kg / height_m**2, 2), category="正常")

    @app.tool(read_only=True)
    async def custom() -> Custom:
        """Gives content of its own type."""
        return Custom(data={})

    @app.resource(
        "data://users/{user_id}{?include_details}", annotations=Annotations(last_modified="2023-11-25T10:30:00Z")
    )
    async def user(user_id: str, include_details: str = "") -> str:
        if user_id == "999":
            raise ResourceNotFound(f"data://users/{user_id}", "用户ID不存在")
        return "用户资料内容..."

    @app.prompt()
    async def code_review(
        code: Annotated[str, Field(description="要审查的代码")],
        language: Annotated[str, Field(description="编程语言")] = "python",
    ) -> str:
        """代码审查提示"""
        return f"请审查以下{language.title()}代码，指出潜在的问题和改进建议：\n\n```{language}\n{code}\n```"

    return app


def document_003() -> Server[None]:
    """A calculator, and what else is defined there."""
    app: Server[None] = Server(Implementation(name="calculator", version="1.0.0"))

    @app.tool(read_only=True)
    async def calculator(ctx: Context[None], expression: str) -> str:
        """Perform calculations"""
        return {"2 + 3 * 4": "14"}[expression]

    @app.tool(read_only=True, title="Weather Information")
    async def weather_current(location: str, units: Literal["metric", "imperial"] = "metric") -> str:
        """Get current weather for any location"""
        return f"22 {units} in {location}"

    @app.tool()
    async def learn(ctx: Context[None]) -> str:
        """Announces that there are other tools now."""
        ctx.changes.tools()
        return "learned"

    @app.resource("file:///path/to/document.md", name="Project README", mime_type="text/markdown")
    async def document() -> str:
        return "# Project"

    @app.prompt()
    async def code_review(code: str) -> str:
        """Review code for best practices"""
        return code

    return app


def document_004() -> Server[None]:
    """A weather service in the old version."""
    app: Server[None] = Server(Implementation(name="你的MCP服务器名称", version="1.0.0"))

    @app.tool(read_only=True)
    async def get_weather(city: str) -> dict[str, Any]:
        """Tells the weather of a city."""
        return {"temperature": 22, "condition": "sunny"}

    @app.resource("memo:///note")
    async def note() -> str:
        return "hello"

    @app.prompt()
    async def greet() -> str:
        """Greets."""
        return "hello"

    return app
