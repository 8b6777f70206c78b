// How a host starts an unpacked MCPB bundle: what the official library makes of its manifest and of what the user set.
import { readFileSync } from "node:fs";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb/node";

const [folder, settings] = process.argv.slice(2);
const config = await getMcpConfigForManifest({
  manifest: JSON.parse(readFileSync(`${folder}/manifest.json`, "utf8")),
  extensionPath: folder,
  systemDirs: {},
  userConfig: JSON.parse(settings),
  pathSeparator: "/",
});
console.log(JSON.stringify(config));
