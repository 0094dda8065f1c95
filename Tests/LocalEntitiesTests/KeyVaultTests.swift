import Foundation
import Testing

@testable import LocalEntities

@Suite("Entities: key vault") struct KeyVaultTests {
    private let file = FileManager.default.temporaryDirectory.appending(path: "vault-\(UUID().uuidString)")

    private func code(_ body: () throws -> Void) -> EntityError.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? EntityError)?.code }
    }

    @Test("a PIN's key is derived with PBKDF2, by the vectors of RFC 7914") func vectors() {
        func hex(_ bytes: [UInt8]) -> String {
            bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
        #expect(
            hex(PINKey.derive("passwd", salt: Array("salt".utf8), iterations: 1))
                == "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc")
        #expect(
            hex(PINKey.derive("Password", salt: Array("NaCl".utf8), iterations: 80_000))
                == "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56")
    }

    @Test("a vault opens with its PIN, over restarts, and locks") func locking() throws {
        defer { try? FileManager.default.removeItem(at: file) }
        let vault = try KeyVault.create(file: file, pin: "1234", iterations: 1_000)
        let key = try vault.key()
        #expect(key.count == 32 && !vault.isLocked)
        vault.lock()
        #expect(vault.isLocked && code { _ = try vault.key() } == .vault)
        let again = try KeyVault(file: file)
        #expect(again.isLocked && code { try again.unlock(pin: "4321") } == .vault && again.isLocked)
        try again.unlock(pin: "1234")
        #expect(try again.key() == key)
        try again.changePIN(from: "1234", to: "longer words")
        #expect(try again.key() == key)
        #expect(code { try again.changePIN(from: "1234", to: "12345") } == .vault)
        #expect(code { try again.changePIN(from: "longer words", to: "1") } == .invalidArgument)
        let last = try KeyVault(file: file)
        #expect(code { try last.unlock(pin: "1234") } == .vault)
        try last.unlock(pin: "longer words")
        #expect(try last.key() == key)
    }

    @Test("ten wrong PINs in a row destroy the key, counted over all callers, and nine do not") func attempts() throws {
        defer { try? FileManager.default.removeItem(at: file) }
        _ = try KeyVault.create(file: file, pin: "1234", iterations: 1_000)
        for _ in 0..<9 { #expect(code { try KeyVault(file: file).unlock(pin: "0000") } == .vault) }
        try KeyVault(file: file).unlock(pin: "1234")
        for _ in 0..<10 { #expect(code { try KeyVault(file: file).unlock(pin: "0000") } == .vault) }
        #expect(code { try KeyVault(file: file).unlock(pin: "1234") } == .vault)
    }

    @Test("bad files, PINs and costs are refused") func refused() throws {
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(code { _ = try KeyVault(file: file) } == .persistence)
        #expect(code { _ = try KeyVault.create(file: file, pin: "123") } == .invalidArgument)
        #expect(code { _ = try KeyVault.create(file: file, pin: "1234", iterations: 1) } == .invalidArgument)
        try Data("x".utf8).write(to: file)
        #expect(code { _ = try KeyVault(file: file) } == .persistence)
        #expect(code { _ = try KeyVault.create(file: file, pin: "1234") } == .persistence)
    }
}
