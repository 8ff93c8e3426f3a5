// Tests of the JavaScript reader: `node --test` in this folder.

import "./tests/basics.mjs";
import "./tests/records.mjs";
import "./tests/damage.mjs";
import "./tests/decoders.mjs";
import "./tests/http.mjs";
import "./tests/foreign.mjs";
import "./tests/scheduled.mjs";
import "./tests/documents.mjs";
