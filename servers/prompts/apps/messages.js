// The messages of a rendered prompt as elements.

import { unfence } from "../../common/web/answers.js";
import { h, visible } from "../../common/web/dom.js";
import { renderMarkdown } from "../../common/web/markdown.js";

const ROLE = /^\[(user|assistant)\](?:\n|$)/;
const OPENING = /^<[a-z]+-[0-9a-f]{8}> /;
const CLOSING = /^<\/[a-z]+-[0-9a-f]{8}>$/;
const MOST_OF_ONE = 300_000;
let headingPrefixes = 0;

/** The messages in a result of render_prompt: each with its role and its blocks. */
export function messagesOf(result) {
  const blocks = result.content ?? [];
  const whole = blocks.length === 1 && blocks[0].type === "text" ? unfence(blocks[0].text) : null;
  if (whole) {
    return [{ role: "user", blocks: [{ type: "text", text: whole.inside }] }];
  }
  return grouped(withoutMarks(blocks));
}

/** The messages as one text for the conversation: a single message unchanged, several with their roles. */
export function textToSend(messages) {
  const texts = messages.map((one) => ({ role: one.role, text: one.blocks.map(textOfBlock).join("\n") }));
  const alone = texts.length === 1 && texts[0].role === "user";
  return alone ? texts[0].text : texts.map((one) => `[${one.role}]\n${one.text}`).join("\n\n");
}

/** One message as a card, with its text as Markdown or as written. */
export function messageCard(message, { source, onLink }) {
  const shown = message.blocks.map((block) => showBlock(block, source, onLink));
  return h(
    "section",
    { class: "card message", "data-role": message.role, "aria-label": `Message from the ${message.role}` },
    h("span", { class: "badge", text: message.role }),
    h("div", { class: "message-body" }, ...shown),
  );
}

function withoutMarks(blocks) {
  const opened = blocks[0]?.type === "text" && OPENING.test(blocks[0].text);
  const closed = blocks.at(-1)?.type === "text" && CLOSING.test(blocks.at(-1).text);
  return opened && closed ? blocks.slice(1, -1) : blocks;
}

function grouped(blocks) {
  const messages = [];
  for (const block of blocks) {
    const role = block.type === "text" ? ROLE.exec(block.text) : null;
    if (role || messages.length === 0) {
      messages.push({ role: role?.[1] ?? "user", blocks: [] });
    }
    const rest = role ? { type: "text", text: block.text.slice(role[0].length) } : block;
    if (!role || rest.text) {
      messages.at(-1).blocks.push(rest);
    }
  }
  return messages;
}

function textOfBlock(block) {
  if (block.type === "text") {
    return block.text;
  }
  return block.resource?.text ?? `[${block.type}: ${block.resource?.uri ?? block.mimeType ?? ""}]`;
}

function showBlock(block, source, onLink) {
  if (block.type === "image") {
    return h("img", { alt: "An image in the prompt", src: `data:${block.mimeType};base64,${block.data}` });
  }
  if (block.type === "audio") {
    return h("audio", {
      controls: true,
      "aria-label": "A sound",
      src: `data:${block.mimeType};base64,${block.data}`,
    });
  }
  const text = textOfBlock(block);
  if (source || block.type !== "text") {
    return h("pre", { tabindex: "0", "aria-label": "The text", text: visible(text, MOST_OF_ONE) });
  }
  // The headings of several messages must have different ids.
  const prefix = `message-${(headingPrefixes += 1)}-`;
  return h("div", { class: "markdown" }, renderMarkdown(text.slice(0, MOST_OF_ONE), { onLink, prefix }));
}
