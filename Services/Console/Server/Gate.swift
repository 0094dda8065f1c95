import SyncModel

/// Whether a request may reach its route: the one place that asks for rights, tokens and origins; pure (SEC13, SEC14).
enum Gate {
    /// - Parameter instance: the instance that the path names.
    /// - Throws: the first thing that stands in the way.
    static func check(
        _ route: Route, _ facts: RequestFacts, _ visitor: Visitor?, instance: InstanceID?
    ) throws(ConsoleFault) {
        if route.method != .get {
            // A program shows its token in a header, which no page of another site can make a browser send.
            guard visitor?.proof == .bearer || !facts.isFromElsewhere else { throw .otherOrigin }
            if let visitor, visitor.proof == .cookie, route.access != .open,
                facts.formToken != visitor.token.formToken
            {
                throw .otherOrigin
            }
        }
        if route.access != .open, visitor == nil { throw .signedOut }
        guard route.access.allows(visitor?.account, instance: instance) else { throw .notAllowed }
        if route.needsPassword, visitor?.isConfirmed != true { throw .passwordNeeded }
    }
}
