package org.mobilesync.backend;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The results of a batch so far, and the pushes that the next attempt sends. */
final class BatchProgress {
    private final List<Push> pushes;
    private final PushResult[] results;
    /** For each push, whether an attempt so far may have stored it. */
    private final boolean[] isOutcomeUnknown;
    private List<Integer> open = new ArrayList<>();
    private int attempts;
    /** An attempt so far had a result for each push. */
    private boolean hasOwnResults;
    /** The error of a batch in which no push has a result of its own; null for none. */
    private BackendException failure;

    BatchProgress(List<Push> pushes) {
        this.pushes = pushes;
        results = new PushResult[pushes.size()];
        isOutcomeUnknown = new boolean[pushes.size()];
        for (int index = 0; index < pushes.size(); index++) open.add(index);
    }

    /** Returns the body of the next attempt. */
    String json() {
        List<String> items = new ArrayList<>();
        for (int index : open) items.add(pushes.get(index).json());
        return "{\"items\":[" + String.join(",", items) + "]}";
    }

    String description() {
        return "the batch of " + open.size() + " pushes";
    }

    /** Applies an answer: to each push its own result, or the answer as a whole when it has none. */
    void apply(ApiAnswer answer) {
        List<ApiAnswer> items = answer.isSuccess() ? answer.results() : null;
        boolean hasResults = items != null && items.size() == open.size();
        hasOwnResults |= hasResults;
        List<Integer> left = new ArrayList<>();
        attempts += 1;
        for (int place = 0; place < open.size(); place++) {
            int index = open.get(place);
            ApiAnswer item = hasResults ? items.get(place) : answer;
            if (hasResults && item.isSuccess()) {
                results[index] = new PushResult(item);
                continue;
            }
            isOutcomeUnknown[index] |= item.isOutcomeUnknown();
            results[index] = new PushResult(BackendException.of(
                pushes.get(index).description(), item, attempts, isOutcomeUnknown[index]));
            if (item.isRetryable()) left.add(index);
        }
        // Without results of their own, all pushes have had the same answers.
        failure = hasOwnResults ? null
            : BackendException.of(description(), answer, attempts, isOutcomeUnknown[0]);
        open = left;
    }

    /** Returns whether the pushes have results of their own. */
    boolean hasResults() {
        return hasOwnResults;
    }

    /** Returns whether every push has a final result. */
    boolean isDone() {
        return open.isEmpty();
    }

    /**
     * Returns the results in the order of the pushes.
     *
     * @throws BackendException when no push has a result of its own
     */
    List<PushResult> results() {
        if (failure != null) throw failure;
        return Arrays.asList(results);
    }
}
