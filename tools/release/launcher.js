#!/usr/bin/env node
"use strict";
// Runs the program of the package that npm installed for this system. Nothing is downloaded here.
const { spawn } = require("node:child_process");
const os = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const name = `@SCOPE/${platform}`;
const file = process.platform === "win32" ? "sessiond.exe" : "sessiond";

function fail(message) {
  process.stderr.write(`sessiond: ${message}\n`);
  process.exit(1);
}

let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  fail(
    `the package ${name} is not installed. Either there is no sessiond for this system, or npm left out optional ` +
      "dependencies (--omit=optional, --no-optional, or node_modules of another system): install sessiond again without that",
  );
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
// A terminal sends Ctrl-C and its end to both processes, and a second Ctrl-C would end sessiond at once: it is waited for.
process.on("SIGINT", () => {});
process.on("SIGHUP", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (err) => {
  const wrong = err.code === "ENOEXEC" || err.errno === -8;
  fail(wrong ? `${program} is not a program for this computer (${os.machine()}): install sessiond again here` : `${err.message}`);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
