package org.mobilesync.internal.json;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON texts (RFC 8259) into slices: a value that the client only passes on keeps its spelling, so that no number
 * loses digits.
 */
public final class JsonText {
    /** The deepest nesting; a deeper text counts as invalid. */
    private static final int DEEPEST = 64;

    private final String text;
    private int position;

    private JsonText(String text) {
        this.text = text;
    }

    /** The text is not valid JSON, or has another form than its reader expects. */
    private static final class Invalid extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** Returns the members of an object with the text of each value, the last one of a repeated name; else null. */
    public static Map<String, String> members(String json) {
        JsonText reader = new JsonText(json);
        Map<String, String> members = new LinkedHashMap<>();
        try {
            reader.expect('{');
            if (!reader.skipIf('}')) {
                do {
                    String name = reader.string();
                    reader.expect(':');
                    members.put(name, reader.slice(0));
                } while (reader.skipIf(','));
                reader.expect('}');
            }
            reader.expectEnd();
            return members;
        } catch (Invalid error) {
            return null;
        }
    }

    /** Returns the text of each element of an array; null for another text. */
    public static List<String> elements(String json) {
        JsonText reader = new JsonText(json);
        List<String> elements = new ArrayList<>();
        try {
            reader.expect('[');
            if (!reader.skipIf(']')) {
                do elements.add(reader.slice(0));
                while (reader.skipIf(','));
                reader.expect(']');
            }
            reader.expectEnd();
            return elements;
        } catch (Invalid error) {
            return null;
        }
    }

    /** Returns the content of a JSON string; null for another value or for null. */
    public static String string(String json) {
        if (json == null) return null;
        JsonText reader = new JsonText(json);
        try {
            String value = reader.string();
            reader.expectEnd();
            return value;
        } catch (Invalid error) {
            return null;
        }
    }

    /** Returns a JSON string with this content (RFC 8259 section 7). */
    public static String quoted(String content) {
        StringBuilder json = new StringBuilder(content.length() + 2).append('"');
        for (int index = 0; index < content.length(); index++) {
            char unit = content.charAt(index);
            switch (unit) {
                case '"':
                case '\\':
                    json.append('\\').append(unit);
                    break;
                case '\n':
                    json.append("\\n");
                    break;
                case '\r':
                    json.append("\\r");
                    break;
                case '\t':
                    json.append("\\t");
                    break;
                default:
                    if (unit < 0x20) {
                        json.append(String.format("\\u%04x", (int) unit));
                    } else {
                        json.append(unit);
                    }
            }
        }
        return json.append('"').toString();
    }

    /** Skips one value and returns its text. */
    private String slice(int depth) throws Invalid {
        skipBlanks();
        int start = position;
        skipValue(depth);
        return text.substring(start, position);
    }

    private void skipValue(int depth) throws Invalid {
        if (depth > DEEPEST || position >= text.length()) throw new Invalid();
        switch (text.charAt(position)) {
            case '{':
                skipObject(depth);
                break;
            case '[':
                position += 1;
                if (skipIf(']')) return;
                do slice(depth + 1);
                while (skipIf(','));
                expect(']');
                break;
            case '"':
                string();
                break;
            default:
                skipLiteral();
        }
    }

    private void skipObject(int depth) throws Invalid {
        position += 1;
        if (skipIf('}')) return;
        do {
            string();
            expect(':');
            slice(depth + 1);
        } while (skipIf(','));
        expect('}');
    }

    private void skipLiteral() throws Invalid {
        int start = position;
        while (position < text.length() && "+-.".indexOf(text.charAt(position)) >= 0
            || position < text.length() && Character.isLetterOrDigit(text.charAt(position))) {
            position += 1;
        }
        String literal = text.substring(start, position);
        boolean isNamed = literal.equals("true") || literal.equals("false") || literal.equals("null");
        if (!isNamed && !literal.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?")) throw new Invalid();
    }

    private String string() throws Invalid {
        expect('"');
        StringBuilder content = new StringBuilder();
        while (true) {
            char unit = next();
            if (unit == '"') return content.toString();
            if (unit < 0x20) throw new Invalid();
            content.append(unit == '\\' ? escaped() : unit);
        }
    }

    private char escaped() throws Invalid {
        char unit = next();
        int plain = "\"\\/bfnrt".indexOf(unit);
        if (plain >= 0) return "\"\\/\b\f\n\r\t".charAt(plain);
        if (unit != 'u' || position + 4 > text.length()) throw new Invalid();
        String digits = text.substring(position, position + 4);
        if (!digits.matches("[0-9a-fA-F]{4}")) throw new Invalid();
        position += 4;
        return (char) Integer.parseInt(digits, 16);
    }

    private char next() throws Invalid {
        if (position >= text.length()) throw new Invalid();
        return text.charAt(position++);
    }

    private void skipBlanks() {
        while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) position += 1;
    }

    private boolean skipIf(char wanted) {
        skipBlanks();
        if (position >= text.length() || text.charAt(position) != wanted) return false;
        position += 1;
        return true;
    }

    private void expect(char wanted) throws Invalid {
        if (!skipIf(wanted)) throw new Invalid();
    }

    private void expectEnd() throws Invalid {
        skipBlanks();
        if (position < text.length()) throw new Invalid();
    }
}
