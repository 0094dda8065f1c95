import Testing

@testable import BackendCalls

@Suite("Base64")
struct Base64Tests {
    @Test("Base64 has one spelling for each content")
    func base64() {
        #expect(Base64.decode("") == [])
        #expect(Base64.decode("AA==") == [0])
        #expect(Base64.decode("AAE=") == [0, 1])
        #expect(Base64.decode("+/+/") == [0xFB, 0xFF, 0xBF])
        for text in ["A", "AA", "AAA", "AA=A", "AB==", "AAF=", "A===", "====", "-_-_", "AA==\n", "AA ==", "é==="] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
    }
}
