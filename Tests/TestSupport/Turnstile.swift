/// Lets so many through at a time; the others wait in their order. For what a small machine cannot do all at once.
package actor Turnstile {
    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(places: Int) { self.places = places }

    /// Runs the body once there is a place.
    package nonisolated func pass<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        await enter()
        do {
            let result = try await body()
            await leave()
            return result
        } catch {
            await leave()
            throw error
        }
    }

    private func enter() async {
        guard places == 0 else {
            places -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func leave() {
        guard !waiting.isEmpty else {
            places += 1
            return
        }
        waiting.removeFirst().resume()
    }
}
